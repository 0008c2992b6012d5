"""The registry. Built-ins and entry points come through the same door, loaded when first named.

A new fault, check or reporter is one line here, or an entry point in group `holdfast.<family>`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from holdfast.errors import PluginError

_RESPONSE = "holdfast.checks.response."
_TOOL = "holdfast.faults.tools."
_LLM = "holdfast.faults.llm."
_CONTEXT = "holdfast.faults.context."
_REPORT = "holdfast.report."

BUILT_IN: Mapping[str, Mapping[str, str]] = {
    "checks": {
        "behavior_unchanged": _RESPONSE + "behavior_unchanged:BehaviorUnchanged",
        "completes": _RESPONSE + "completes:Completes",
        "contains": _RESPONSE + "contains:Contains",
        "contains_any": _RESPONSE + "contains_any:ContainsAny",
        "ending": _RESPONSE + "ending:Ending",
        "excludes_pattern": _RESPONSE + "excludes_pattern:ExcludesPattern",
        "excludes_pii": _RESPONSE + "excludes_pii:ExcludesPii",
        "latency": _RESPONSE + "latency:Latency",
        "output_not_empty": _RESPONSE + "output_not_empty:OutputNotEmpty",
        "refusal_check": _RESPONSE + "refusal_check:RefusalCheck",
        "regex": _RESPONSE + "regex:Regex",
        "similarity": _RESPONSE + "similarity:Similarity",
        "system_prompt_leak_probe": _RESPONSE + "system_prompt_leak_probe:SystemPromptLeakProbe",
        "valid_json": _RESPONSE + "valid_json:ValidJson",
    },
    "faults.tool": {
        "auth_expired": _TOOL + "auth_expired:AuthExpired",
        "empty": _TOOL + "empty:Empty",
        "error": _TOOL + "error:Error",
        "error_in_body": _TOOL + "error_in_body:ErrorInBody",
        "flapping": _TOOL + "flapping:Flapping",
        "lost_reply": _TOOL + "lost_reply:LostReply",
        "malformed": _TOOL + "malformed:Malformed",
        "malicious_response": _TOOL + "malicious_response:MaliciousResponse",
        "oversized": _TOOL + "oversized:Oversized",
        "partial": _TOOL + "partial:Partial",
        "phantom_success": _TOOL + "phantom_success:PhantomSuccess",
        "rate_limit": _TOOL + "rate_limit:RateLimit",
        "schema_drift": _TOOL + "schema_drift:SchemaDrift",
        "slow": _TOOL + "slow:Slow",
        "stale": _TOOL + "stale:Stale",
        "timeout": _TOOL + "timeout:Timeout",
        "wrong_value": _TOOL + "wrong_value:WrongValue",
    },
    "faults.llm": {
        "empty": _LLM + "empty:Empty",
        "garbage": _LLM + "garbage:Garbage",
        "rate_limit": _LLM + "rate_limit:RateLimit",
        "response_drift": _LLM + "response_drift:ResponseDrift",
        "timeout": _LLM + "timeout:Timeout",
        "truncated_response": _LLM + "truncated_response:TruncatedResponse",
    },
    "faults.context": {
        "conflicting_context": _CONTEXT + "conflicting_context:ConflictingContext",
        "indirect_injection": _CONTEXT + "indirect_injection:IndirectInjection",
        "injection_via_context": _CONTEXT + "injection_via_context:InjectionViaContext",
        "memory_poisoning": _CONTEXT + "memory_poisoning:MemoryPoisoning",
        "overflow": _CONTEXT + "overflow:Overflow",
    },
    "reporters": {
        "html": _REPORT + "html:Html",
        "json": _REPORT + "json:Json",
        "junit": _REPORT + "junit:Junit",
        "markdown": _REPORT + "markdown:Markdown",
    },
}


@cache
def find(family: str, name: str) -> Any | None:
    """The plug-in of that name, or None."""
    path = BUILT_IN[family].get(name)
    if path is not None:
        module, _, attribute = path.partition(":")
        return getattr(import_module(module), attribute)
    point = _entry_points(family).get(name)
    if point is None:
        return None
    try:
        return point.load()
    except Exception as broken:
        raise PluginError(f"plug-in {name!r} of {family} cannot be loaded: {broken}") from broken


def names(family: str) -> list[str]:
    """All names of a family, sorted: built-ins and installed plug-ins."""
    return sorted({*BUILT_IN[family], *_entry_points(family)})


def catalogue(family: str) -> Iterator[tuple[str, Any]]:
    """Every plug-in of a family with its name."""
    for name in names(family):
        yield name, find(family, name)


@cache
def _entry_points(family: str) -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {p.name: p for p in entry_points(group=f"holdfast.{family}")}
