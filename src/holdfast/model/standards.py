"""Entries of public lists of risks and attacks that a fault, a check or a mutation stands for.

Only what an attack does is mapped, or what a check looks for: a tool that is down is on none of these lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

Mapped: TypeAlias = Literal["fault", "check", "mutation"]

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
_INDIRECT = ("ASI01", "LLM01:2025", "AML.T0051.001")
_DIRECT = ("ASI01", "LLM01:2025", "AML.T0051.000")
_OF: Mapping[tuple[Mapped, str], tuple[str, ...]] = {
    ("fault", "malicious_response"): _INDIRECT,
    ("fault", "indirect_injection"): _INDIRECT,
    ("fault", "injection_via_context"): _INDIRECT,
    ("fault", "memory_poisoning"): ("ASI06", "AML.T0080.000"),
    ("fault", "conflicting_context"): ("ASI06",),
    ("fault", "overflow"): ("LLM10:2025",),
    ("fault", "tool_poisoning"): ("ASI04", "LLM01:2025", "AML.T0110"),
    ("check", "excludes_pii"): ("LLM02:2025", "AML.T0057"),
    ("check", "max_cost"): ("LLM10:2025",),
    ("check", "max_tokens"): ("LLM10:2025",),
    ("check", "system_prompt_leak_probe"): ("LLM07:2025", "AML.T0056"),
    ("mutation", "prompt_injection"): _DIRECT,
    ("mutation", "context_manipulation"): _DIRECT,
    ("mutation", "multi_turn_attack"): _DIRECT,
    ("mutation", "advanced_jailbreak"): ("LLM01:2025", "AML.T0054"),
    ("mutation", "semantic_similarity_attack"): _DIRECT,
    ("mutation", "format_poisoning"): _DIRECT,
    ("mutation", "temporal_attack"): _DIRECT,
    ("mutation", "payload_size_attack"): ("LLM10:2025",),
    ("mutation", "resource_exhaustion"): ("LLM10:2025", "AML.T0029"),
}


class StandardEntry(Struct, frozen=True):
    """One entry of one list."""

    list: str
    """The list and its version, in words."""
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


def standards_of(kind: Mapped, name: str) -> tuple[StandardEntry, ...]:
    """What it stands for; nothing for most."""
    return tuple(_KNOWN[id] for id in _OF.get((kind, name), ()))


def standards_of_all(things: Iterable[tuple[Mapped, str]]) -> tuple[StandardEntry, ...]:
    """What several stand for together, each once."""
    return tuple(dict.fromkeys(one for kind, name in things for one in standards_of(kind, name)))
