"""Maps faults, checks and mutations to entries of public lists of risks and attacks.

Only attacks, and checks that look for them, are mapped: a tool that is down is on none of these lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

AGENTIC = "OWASP Top 10 for Agentic Applications 2026"
LLM = "OWASP Top 10 for LLM Applications 2025"
ATLAS = "MITRE ATLAS 5.6.0"
_PAGES = {
    AGENTIC: "https://genai.owasp.org/resource/owasp-top-10-for-agentic-applications-for-2026/",
    LLM: "https://genai.owasp.org/llm-top-10/",
    ATLAS: "https://atlas.mitre.org/techniques/{id}",
}
_TITLES: Mapping[str, Mapping[str, str]] = {
    AGENTIC: {
        "ASI01": "Agent Goal Hijack",
        "ASI04": "Agentic Supply Chain Vulnerabilities",
        "ASI06": "Memory & Context Poisoning",
    },
    LLM: {
        "LLM01:2025": "Prompt Injection",
        "LLM02:2025": "Sensitive Information Disclosure",
        "LLM07:2025": "System Prompt Leakage",
        "LLM10:2025": "Unbounded Consumption",
    },
    ATLAS: {
        "AML.T0029": "Denial of AI Service",
        "AML.T0051.000": "LLM Prompt Injection: Direct",
        "AML.T0051.001": "LLM Prompt Injection: Indirect",
        "AML.T0054": "LLM Jailbreak",
        "AML.T0056": "Extract LLM System Prompt",
        "AML.T0057": "LLM Data Leakage",
        "AML.T0080.000": "AI Agent Context Poisoning: Memory",
        "AML.T0110": "AI Agent Tool Poisoning",
    },
}
_DIRECT = ("ASI01", "LLM01:2025", "AML.T0051.000")
MUTATIONS: Mapping[str, tuple[str, ...]] = {
    "prompt_injection": _DIRECT,
    "context_manipulation": _DIRECT,
    "multi_turn_attack": _DIRECT,
    "advanced_jailbreak": ("LLM01:2025", "AML.T0054"),
    "semantic_similarity_attack": _DIRECT,
    "format_poisoning": _DIRECT,
    "temporal_attack": _DIRECT,
    "payload_size_attack": ("LLM10:2025",),
    "resource_exhaustion": ("LLM10:2025", "AML.T0029"),
}
"""The entries for mutations; faults and checks declare theirs in their traits."""


class StandardEntry(Struct, frozen=True):
    """One entry of one list."""

    list: str
    """The list and its version."""
    id: str
    title: str
    url: str

    def __str__(self) -> str:
        return f"{self.id} {self.title}"


_KNOWN: Mapping[str, StandardEntry] = {
    id: StandardEntry(listed, id, title, _PAGES[listed].format(id=id))
    for listed, titles in _TITLES.items()
    for id, title in titles.items()
}


def find_entries(ids: Iterable[str]) -> tuple[StandardEntry, ...]:
    """Return the entries with these ids, without repeats."""
    return tuple(dict.fromkeys(_KNOWN[id] for id in ids if id in _KNOWN))
