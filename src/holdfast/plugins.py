"""The registry. Built-ins and entry points are found in the same way, loaded when first named.

A new fault, check, service or reporter is one line here, or an entry point in group `holdfast.<family>`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdfast.errors import PluginError, format_error_place

if TYPE_CHECKING:
    from holdfast.protocols.fault import FaultTraits

_RESPONSE = "holdfast.checks.response."
_TRACE = "holdfast.checks.trace."
_STATE = "holdfast.checks.state."
_TOOL = "holdfast.faults.tools."
_LLM = "holdfast.faults.llm."
_CONTEXT = "holdfast.faults.context."
_MCP = "holdfast.faults.mcp."
_NETWORK = "holdfast.faults.network."
_SERVICE = "holdfast.faults.service."
_WORLD = "holdfast.faults.world."
_REPORT = "holdfast.report."
_KIND = "holdfast.world.services.kinds:"

BUILT_IN: Mapping[str, Mapping[str, str]] = {
    "checks": {
        "behavior_unchanged": _RESPONSE + "behavior_unchanged:BehaviorUnchanged",
        "claim_matches_state": _STATE + "claim_matches_state:ClaimMatchesState",
        "command_exit": _STATE + "command_exit:CommandExit",
        "completes": _RESPONSE + "completes:Completes",
        "contains": _RESPONSE + "contains:Contains",
        "contains_any": _RESPONSE + "contains_any:ContainsAny",
        "custom": _STATE + "custom:Custom",
        "db_unchanged_except": _STATE + "db_unchanged_except:DbUnchangedExcept",
        "ending": _RESPONSE + "ending:Ending",
        "excludes_pattern": _RESPONSE + "excludes_pattern:ExcludesPattern",
        "excludes_pii": _RESPONSE + "excludes_pii:ExcludesPii",
        "file_absent": _STATE + "file_absent:FileAbsent",
        "file_content": _STATE + "file_content:FileContent",
        "file_exists": _STATE + "file_exists:FileExists",
        "files_changed_only": _STATE + "files_changed_only:FilesChangedOnly",
        "http_mock_assertions": _STATE + "http_mock_assertions:HttpMockAssertions",
        "json_field": _RESPONSE + "json_field:JsonField",
        "latency": _RESPONSE + "latency:Latency",
        "llm_as_judge": _STATE + "llm_as_judge:LlmAsJudge",
        "max_calls": _TRACE + "max_calls:MaxCalls",
        "max_cost": _TRACE + "max_cost:MaxCost",
        "max_tokens": _TRACE + "max_tokens:MaxTokens",
        "only_after": _TRACE + "only_after:OnlyAfter",
        "output_not_empty": _RESPONSE + "output_not_empty:OutputNotEmpty",
        "recovers_within_ms": _TRACE + "recovers_within_ms:RecoversWithinMs",
        "refusal_check": _RESPONSE + "refusal_check:RefusalCheck",
        "regex": _RESPONSE + "regex:Regex",
        "retries_within": _TRACE + "retries_within:RetriesWithin",
        "side_effect_once": _TRACE + "side_effect_once:SideEffectOnce",
        "similarity": _RESPONSE + "similarity:Similarity",
        "sql": _STATE + "sql:Sql",
        "system_prompt_leak_probe": _RESPONSE + "system_prompt_leak_probe:SystemPromptLeakProbe",
        "tool_called": _TRACE + "tool_called:ToolCalled",
        "tool_not_called": _TRACE + "tool_not_called:ToolNotCalled",
        "tool_order": _TRACE + "tool_order:ToolOrder",
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
        "content_filter": _LLM + "content_filter:ContentFilter",
        "context_length": _LLM + "context_length:ContextLength",
        "empty": _LLM + "empty:Empty",
        "empty_choices": _LLM + "empty_choices:EmptyChoices",
        "garbage": _LLM + "garbage:Garbage",
        "malformed_tool_call": _LLM + "malformed_tool_call:MalformedToolCall",
        "odd_chunks": _LLM + "odd_chunks:OddChunks",
        "overloaded": _LLM + "overloaded:Overloaded",
        "quota": _LLM + "quota:Quota",
        "rate_limit": _LLM + "rate_limit:RateLimit",
        "repeat_tool_call": _LLM + "repeat_tool_call:RepeatToolCall",
        "response_drift": _LLM + "response_drift:ResponseDrift",
        "server_error": _LLM + "server_error:ServerError",
        "slow_tokens": _LLM + "slow_tokens:SlowTokens",
        "stream_cut": _LLM + "stream_cut:StreamCut",
        "timeout": _LLM + "timeout:Timeout",
        "truncated_response": _LLM + "truncated_response:TruncatedResponse",
        "unknown_tool": _LLM + "unknown_tool:UnknownTool",
        "wrong_args": _LLM + "wrong_args:WrongArgs",
    },
    "faults.context": {
        "conflicting_context": _CONTEXT + "conflicting_context:ConflictingContext",
        "indirect_injection": _CONTEXT + "indirect_injection:IndirectInjection",
        "injection_via_context": _CONTEXT + "injection_via_context:InjectionViaContext",
        "memory_poisoning": _CONTEXT + "memory_poisoning:MemoryPoisoning",
        "overflow": _CONTEXT + "overflow:Overflow",
    },
    "faults.http": {
        "bandwidth": _NETWORK + "bandwidth:Bandwidth",
        "dns_failure": _NETWORK + "dns_failure:DnsFailure",
        "down": _NETWORK + "down:Down",
        "latency": _NETWORK + "latency:Latency",
        "limit_data": _NETWORK + "limit_data:LimitData",
        "partition": _NETWORK + "partition:Partition",
        "reset_peer": _NETWORK + "reset_peer:ResetPeer",
        "slicer": _NETWORK + "slicer:Slicer",
        "slow_close": _NETWORK + "slow_close:SlowClose",
        "timeout": _NETWORK + "timeout:Timeout",
        "tls_error": _NETWORK + "tls_error:TlsError",
    },
    "faults.mcp": {
        "crash_mid_call": _MCP + "crash_mid_call:CrashMidCall",
        "error_as_result": _MCP + "error_as_result:ErrorAsResult",
        "hang": _MCP + "hang:Hang",
        "malformed_rpc": _MCP + "malformed_rpc:MalformedRpc",
        "result_as_error": _MCP + "result_as_error:ResultAsError",
        "session_lost": _MCP + "session_lost:SessionLost",
        "tool_poisoning": _MCP + "tool_poisoning:ToolPoisoning",
        "tools_changed": _MCP + "tools_changed:ToolsChanged",
    },
    "faults.service": {
        "bandwidth": _NETWORK + "bandwidth:Bandwidth",
        "connections_exhausted": _SERVICE + "connections_exhausted:ConnectionsExhausted",
        "dns_failure": _NETWORK + "dns_failure:DnsFailure",
        "down": _NETWORK + "down:Down",
        "down_at_start": _SERVICE + "down_at_start:DownAtStart",
        "killed_mid_transaction": _SERVICE + "killed_mid_transaction:KilledMidTransaction",
        "latency": _SERVICE + "latency:Latency",
        "limit_data": _NETWORK + "limit_data:LimitData",
        "lock_wait": _SERVICE + "lock_wait:LockWait",
        "partition": _NETWORK + "partition:Partition",
        "read_only": _SERVICE + "read_only:ReadOnly",
        "reset_peer": _NETWORK + "reset_peer:ResetPeer",
        "serialization_failure": _SERVICE + "serialization_failure:SerializationFailure",
        "slicer": _NETWORK + "slicer:Slicer",
        "slow_close": _NETWORK + "slow_close:SlowClose",
        "slow_query": _SERVICE + "slow_query:SlowQuery",
        "timeout": _NETWORK + "timeout:Timeout",
        "tls_error": _NETWORK + "tls_error:TlsError",
    },
    "faults.world": {
        "cpu_throttle": _WORLD + "cpu_throttle:CpuThrottle",
        "disk_full": _WORLD + "disk_full:DiskFull",
        "frozen": _WORLD + "frozen:Frozen",
        "jump": _WORLD + "jump:Jump",
        "killed": _WORLD + "killed:Killed",
        "memory_limit": _WORLD + "memory_limit:MemoryLimit",
        "permission": _WORLD + "permission:Permission",
        "read_only": _WORLD + "read_only:ReadOnly",
        "skew": _WORLD + "skew:Skew",
        "vanished": _WORLD + "vanished:Vanished",
    },
    "services": {
        "container": _KIND + "AnyImage",
        "external": _KIND + "ExternalKind",
        "http_mock": _KIND + "MockKind",
        "mysql": _KIND + "MysqlKind",
        "postgres": _KIND + "PostgresKind",
        "redis": _KIND + "RedisKind",
    },
    "sandboxes": {
        "bubblewrap": "holdfast.world.sandbox.bubblewrap:Bubblewrap",
        "docker": "holdfast.world.sandbox.docker:DockerBackend",
        "process": "holdfast.world.sandbox.process:ProcessBackend",
    },
    "reporters": {
        "html": _REPORT + "page.html:Html",
        "json": _REPORT + "formats.json:Json",
        "junit": _REPORT + "formats.junit:Junit",
        "markdown": _REPORT + "formats.markdown:Markdown",
        "sarif": _REPORT + "formats.sarif:Sarif",
    },
}

SUFFIXES = {"html": ".html", "json": ".json", "junit": ".xml", "markdown": ".md", "sarif": ".sarif"}
"""Of the built-in reporters, so that none is imported to be passed over."""
DEFAULT_BACKEND = "bubblewrap"
_TRAITS = {"checks": "CheckTraits", "services": "ServiceTraits", "sandboxes": "SandboxTraits"}
"""Families whose plug-ins must declare traits; those of a fault have defaults."""


@cache
def find(family: str, name: str) -> Any | None:
    """Return the plug-in of that name, or None."""
    path = BUILT_IN[family].get(name)
    if path is not None:
        module, _, attribute = path.partition(":")
        return getattr(import_module(module), attribute)
    point = _list_entry_points(family).get(name)
    if point is None:
        return None
    try:
        plugin = point.load()
    except Exception as broken:
        why = f"{type(broken).__name__}: {broken}{format_error_place(broken)}"
        raise PluginError(f"plug-in {name!r} of {family} cannot be loaded: {why}", code="plugin-broken") from broken
    from holdfast.model.format_numbers import PROTOCOLS  # not above: TAB needs names, and none of what this loads

    number = getattr(plugin, "protocol_version", PROTOCOLS)  # of somebody else's class
    if number != PROTOCOLS:
        said = f"plug-in {name!r} of {family} has protocol_version {number!r}; this version of Holdfast has {PROTOCOLS}"
        raise PluginError(f"{said}: install a release of the plug-in that fits", code="plugin-broken")
    traits = _TRAITS.get(family)
    if traits is not None and type(getattr(plugin, "traits", None)).__name__ != traits:
        raise PluginError(
            f"plug-in {name!r} of {family} has no class variable `traits`, a {traits}", code="plugin-broken"
        )
    return plugin


def get_fault_traits(plane: str, mode: str) -> FaultTraits:
    """Return a fault's traits, which do not depend on its settings; the defaults if it is not installed."""
    from holdfast.protocols.fault import read_traits

    return read_traits(find(f"faults.{plane}", mode))


def list_names(family: str) -> list[str]:
    """Return all names of a family, sorted: built-ins and installed plug-ins."""
    return sorted({*BUILT_IN[family], *_list_entry_points(family)})


def list_plugins(family: str) -> Iterator[tuple[str, Any]]:
    """Yield every plug-in of a family with its name."""
    for name in list_names(family):
        yield name, find(family, name)


@cache
def _list_entry_points(family: str) -> dict[str, Any]:
    return {point.name: point for point in _read_entry_points().select(group=f"holdfast.{family}")}


@cache
def _read_entry_points() -> Any:
    """Return every entry point of this Python. Scanning all installed packages is slow, so this happens once."""
    from importlib.metadata import entry_points

    return entry_points()
