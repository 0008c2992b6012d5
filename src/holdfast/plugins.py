"""The registry. Built-ins and entry points are found in the same way, loaded when first named.

A new fault, check, service or reporter is one name here, or an entry point in group `holdfast.<family>`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdfast.errors import PluginError, format_error_place

if TYPE_CHECKING:
    from holdfast.protocols.fault import FaultTraits


def _list_files(folder: str, names: str) -> dict[str, str]:
    """Return the place of each plug-in of a folder: the class `LostReply` of `lost_reply.py` is `lost_reply`."""
    return {name: f"holdfast.{folder}.{name}:{name.title().replace('_', '')}" for name in names.split()}


_NETWORK = _list_files(
    "faults.network",
    "bandwidth dns_failure down latency limit_data partition reset_peer slicer slow_close timeout tls_error",
)

BUILT_IN: Mapping[str, Mapping[str, str]] = {
    "checks": _list_files(
        "checks.response",
        "behavior_unchanged completes contains contains_any ending excludes_pattern excludes_pii json_field "
        "latency output_not_empty refusal_check regex similarity system_prompt_leak_probe valid_json",
    )
    | _list_files(
        "checks.state",
        "claim_matches_state command_exit custom db_unchanged_except file_absent file_content file_exists "
        "files_changed_only http_mock_assertions llm_as_judge sql",
    )
    | _list_files(
        "checks.trace",
        "max_calls max_cost max_tokens only_after recovers_within_ms retries_within side_effect_once "
        "tool_called tool_not_called tool_order",
    ),
    "faults.tool": _list_files(
        "faults.tools",
        "auth_expired empty error error_in_body flapping lost_reply malformed malicious_response oversized "
        "partial phantom_success rate_limit schema_drift slow stale timeout wrong_value",
    ),
    "faults.llm": _list_files(
        "faults.llm",
        "content_filter context_length empty empty_choices garbage malformed_tool_call odd_chunks overloaded "
        "quota rate_limit repeat_tool_call response_drift server_error slow_tokens stream_cut timeout "
        "truncated_response unknown_tool wrong_args",
    ),
    "faults.context": _list_files(
        "faults.context",
        "conflicting_context indirect_injection injection_via_context memory_poisoning overflow",
    ),
    "faults.http": _NETWORK,
    "faults.mcp": _list_files(
        "faults.mcp",
        "crash_mid_call error_as_result hang malformed_rpc result_as_error session_lost tool_poisoning tools_changed",
    ),
    "faults.service": _NETWORK
    | _list_files(
        "faults.service",
        "connections_exhausted down_at_start killed_mid_transaction latency lock_wait read_only "
        "serialization_failure slow_query",
    ),
    "faults.world": _list_files(
        "faults.world",
        "cpu_throttle disk_full frozen jump killed memory_limit permission read_only skew vanished",
    ),
    "services": {
        "container": "holdfast.world.services.kinds:AnyImage",
        "external": "holdfast.world.services.kinds:ExternalKind",
        "http_mock": "holdfast.world.services.kinds:MockKind",
        "mysql": "holdfast.world.services.kinds:MysqlKind",
        "postgres": "holdfast.world.services.kinds:PostgresKind",
        "redis": "holdfast.world.services.kinds:RedisKind",
    },
    "sandboxes": {
        "bubblewrap": "holdfast.world.sandbox.bubblewrap:Bubblewrap",
        "docker": "holdfast.world.sandbox.docker:DockerBackend",
        "process": "holdfast.world.sandbox.process:ProcessBackend",
    },
    "reporters": _list_files("report.page", "html") | _list_files("report.formats", "json junit markdown sarif"),
}
"""By family and name: `module:Class`."""

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
    from holdfast.model.codec import PROTOCOLS  # not above: TAB needs names, and none of what this loads

    number = getattr(plugin, "protocol_version", PROTOCOLS)  # of somebody else's class
    if number != PROTOCOLS:
        message = (
            f"plug-in {name!r} of {family} has protocol_version {number!r}; this version of Holdfast has {PROTOCOLS}"
        )
        raise PluginError(f"{message}: install a release of the plug-in that fits", code="plugin-broken")
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
