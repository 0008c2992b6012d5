"""Faults in a scenario: mode, plane, target and schedule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Literal

from msgspec import Struct
from msgspec.structs import fields, replace

from holdfast.model.codec import to_builtins
from holdfast.model.scenario import INPUT, Injection, Plane, Schedule
from holdfast.protocols.fault import TaskFault, WireFault
from holdfast.reading.durations import Duration
from holdfast.reading.fields import about, list_key_names
from holdfast.reading.node import Node
from holdfast.reading.reader import BAD, Bad, Reader
from holdfast.spec.rules.variants import ChosenVariant, choose, read_settings, report_misspelt_selector
from holdfast.spec.sections.forms import Code

LONGEST_GLOB = 1_000
"""A longer glob may take minutes to match."""


class ToolFaultKeys(Schedule, frozen=True, kw_only=True):
    """Keys of every tool fault."""

    tool: Annotated[str, about("The tool: a name or a glob.", min_length=1, max_length=LONGEST_GLOB)]
    mode: Annotated[str, about("The fault.")]
    match_url: Annotated[str | None, about("Act on HTTP requests to this URL glob.", min_length=1)] = None
    raises: Annotated[Code | None, about("The exception class that a Python tool raises.")] = None


class LlmFaultKeys(Schedule, frozen=True, kw_only=True):
    """Keys of every LLM fault."""

    mode: Annotated[str, about("The fault.")]
    raises: Annotated[Code | None, about("The exception class that a Python model function raises.")] = None


class AttackKeys(Schedule, frozen=True, kw_only=True):
    """Keys of every context attack."""

    type: Annotated[str, about("The attack.")]
    trigger_probability: Annotated[float, about("Alias of probability.", ge=0, le=1)] = 1.0
    tool: Annotated[
        str, about("Attack only results of this tool: a name or a glob.", min_length=1, max_length=LONGEST_GLOB)
    ] = "*"
    match_url: Annotated[
        str | None, about("Attack the replies of this URL glob instead of tool results.", min_length=1)
    ] = None


class McpFaultKeys(Schedule, frozen=True, kw_only=True):
    """Keys of every MCP fault."""

    mode: Annotated[str, about("The fault.")]
    tool: Annotated[str, about("The tool: a name or a glob.", min_length=1, max_length=LONGEST_GLOB)] = "*"


class HttpFaultKeys(Schedule, frozen=True, kw_only=True):
    """Keys of every HTTP fault."""

    mode: Annotated[str, about("The fault.")]
    match_url: Annotated[str, about("The URLs: a glob.", min_length=1)] = "*"


class ServiceFaultKeys(Schedule, frozen=True, kw_only=True):
    """Keys of every service fault."""

    service: Annotated[str, about("The service's name in services.", min_length=1)]
    mode: Annotated[str, about("The fault.")]


class WorldFaultKeys(Struct, frozen=True, kw_only=True):
    """Keys of every world fault."""

    mode: Annotated[str, about("The fault.")]
    after_ms: Annotated[Duration | None, about("The time from the start of the trial to the fault, in ms.")] = None
    on_event: Annotated[
        Literal["llm_call", "tool_call", "mcp_call", "http_call", "command", "file_write", "db_write"] | None,
        about("Act at the first such event."),
    ] = None
    after_event: Annotated[dict[str, int] | None, about("Act after the Nth write of the agent, as in {write: 2}.")] = (
        None
    )


_CLASS = r"\[(?:!\]|\]|!(?!\])|(?![!\]]))[^\]]*\]"
"""A character class, as fnmatch reads it: a `]` at its beginning is part of it."""
LONGEST = 2000
"""Characters that are examined: no host or tool has a longer name."""


def report_glob_problems(reader: Reader, node: Node) -> None:
    """Report names that no tool or host can have. A tool behind a URL may have any name."""
    url, tool = _get_text(node, "match_url"), _get_text(node, "tool")
    if _is_open((url.partition("://")[2] or url).partition("/")[0]):
        message = "the [ in its host is never closed, so it matches no URL"
        hint = "close it: an IPv6 address is written [::1], a class of characters [ab]"
        reader.report(node.get("match_url"), message, hint=hint, code="bad-value")
    elif not url and _is_open(tool):
        message = "the [ is never closed, so it matches no tool"
        hint = "close it, as in [ab]*; a [ itself is written [[]"
        reader.report(node.get("tool"), message, hint=hint, code="bad-value")


def _get_text(node: Node, key: str) -> str:
    return str(node.get(key).value) if node.has(key) and node.get(key).kind == "text" else ""


def _is_open(glob: str) -> bool:
    return "[" in re.sub(_CLASS, "", glob[:LONGEST])


_EXCLUSIVE = (
    ("on_event", "after_ms", "a fault begins at a time or at an event"),
    ("on_call", "after_calls", "on_call counts all calls"),
    ("after_event", "on_call", "a fault waits for a call or for a write"),
    ("after_event", "after_calls", "a fault waits for a call or for a write"),
    ("after_event", "after_ms", "a fault begins at a time or at an event"),
    ("after_event", "on_event", "a fault waits for one event"),
    ("trigger_probability", "probability", "they mean the same"),
)
"""Two keys of a schedule, and why they cannot be combined."""
_BEGINS = ("after_ms", "on_event", "after_event")
"""When a fault of the world begins: kept with its settings."""
_PLACES = ("tool", "match_url", "service")
"""Keys that say where a fault acts."""


class Family(Struct, frozen=True):
    """One list of faults in a scenario."""

    name: str
    plane: Plane
    keys: type
    selector: str = "mode"
    target: str | None = None
    """The key that names the target."""

    @property
    def registry(self) -> str:
        """Its plug-in family."""
        return f"faults.{self.plane}"


FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family("tool_faults", "tool", ToolFaultKeys, target="tool"),
        Family("llm_faults", "llm", LlmFaultKeys),
        Family("context_attacks", "context", AttackKeys, "type", "tool"),
        Family("mcp_faults", "mcp", McpFaultKeys, target="tool"),
        Family("http_faults", "http", HttpFaultKeys, target="match_url"),
        Family("service_faults", "service", ServiceFaultKeys, target="service"),
        Family("world_faults", "world", WorldFaultKeys),
    )
}


class FaultEntry(Struct, frozen=True):
    """A fault as read, with the positions that later checks need."""

    family: Family
    injection: Injection
    plugin: Any
    at: Node


def write_faults(injections: Iterable[Injection]) -> dict[str, list[dict[str, Any]]]:
    """Return the YAML lists of a scenario that would be read as these faults."""
    lists: dict[str, list[dict[str, Any]]] = {}
    for injection in injections:
        family = next(known for known in FAMILIES.values() if known.plane == injection.plane)
        entry = {family.selector: injection.mode, **injection.settings, **to_builtins(injection.schedule)}
        if family.target is not None and injection.target not in (INPUT, _get_default_target(family)):
            entry = {family.target: injection.target, **entry}
        entry |= {
            key: value for key, value in (("match_url", injection.match_url), ("raises", injection.raises)) if value
        }
        lists.setdefault(family.name, []).append(entry)
    return lists


@cache
def _get_default_target(family: Family) -> object:
    """Return the default target of the family; NODEFAULT if the target is required."""
    return next(key.default for key in fields(family.keys) if key.name == family.target)


def read_faults(reader: Reader, name: str, node: Node) -> tuple[FaultEntry, ...] | Bad:
    """Return the faults of one list; context attacks may also be a map of type to settings."""
    if name == "context_attacks" and node.kind == "map":
        entries = [_convert_map_entry(key, *pair) for key, pair in node.pairs.items()]
    elif node.kind == "list":
        entries = node.items
    else:
        expected = "a list or a map" if name == "context_attacks" else "a list"
        hint = "write its entries below it, each after a dash" if node.kind == "null" else ""
        return reader.report_type(node, expected, hint=hint)
    placed = [_read_fault(reader, FAMILIES[name], entry) for entry in entries]
    return tuple(p for p in placed if not isinstance(p, Bad))


def _convert_map_entry(key: str, key_node: Node, value: Node) -> Node:
    """Convert an entry of the map form to one of the list form."""
    if value.kind not in ("map", "null") or value.has("type"):
        return value
    kind = replace(key_node, kind="text", value=key, text=key, path=f"{key_node.path}.type")
    return replace(key_node, kind="map", pairs={"type": (key_node, kind), **value.pairs})


def _read_fault(reader: Reader, family: Family, node: Node) -> FaultEntry | Bad:
    if node.kind != "map":
        return reader.report_type(node, "a map")
    common = reader.read_keys(family.keys, node)
    if not node.has(family.selector):
        report_misspelt_selector(reader, family.selector, node, list_key_names(family.keys))
    choice = choose(reader, node, family.selector, family.registry) if node.has(family.selector) else BAD
    if isinstance(choice, Bad):
        return BAD
    chosen = read_settings(reader, choice, node, list_key_names(family.keys))
    for key, other, why in _EXCLUSIVE:
        if node.has(key) and node.has(other):
            reader.report_conflict(node.get_key(key), f"{other} and {key} cannot be combined: {why}")
    event = node.get("after_event")
    number = event.get("write") if event.kind == "map" and [*event.pairs] == ["write"] else event
    if node.has("after_event") and not (number.kind == "int" and isinstance(number.value, int) and number.value >= 1):
        reader.report(event, "expected {write: N}, N from 1", code="bad-value")
    for key in ("probability", "trigger_probability"):
        if node.has(key) and node.get(key).kind in ("int", "float") and node.get(key).value == 0:
            reader.warn(node.get(key), "with probability 0 this fault never fires", code="lint-probability-zero")
    _report_match_problems(reader, family, node)
    report_glob_problems(reader, node)
    if isinstance(common, Bad) or isinstance(chosen, Bad):
        return BAD
    return _build_entry(reader, family, common, chosen, node)


def _report_match_problems(reader: Reader, family: Family, node: Node) -> None:
    """Report a key of the fault itself inside `match`, which is for arguments: no call would ever match."""
    match = node.get("match")
    for key in match.pairs if match.kind == "map" else ():
        if key in _PLACES and key in list_key_names(family.keys) and not node.has(key):
            message = f"match is for the arguments of a call, and {key} is a key of the fault itself"
            hint = f"write {key}: next to match; for an argument called {key} write both"
            reader.report_conflict(match.get_key(key), message, hint=hint)


NOT_OF_INPUT = {"match": "arguments", "match_url": "URL", "tool": "tool"}
"""Keys of an attack on tools that one on the input cannot have, and why."""


def is_on_input(plugin: type) -> bool:
    """Return whether it attacks the agent's input: it rewrites a text and has no call to act on."""
    return issubclass(plugin, TaskFault) and not issubclass(plugin, WireFault)


def _get_attack_target(reader: Reader, common: dict[str, Any], chosen: ChosenVariant, node: Node) -> str | Bad:
    """Return the target of an attack: tools, or the input."""
    if is_on_input(chosen.choice.type):
        for key, what in NOT_OF_INPUT.items():
            if key in common:
                return reader.report(node.get_key(key), f"this attack is on the input, which has no {what}")
        return INPUT
    if "tool" in common and "match_url" in common:
        message = "tool and match_url cannot be combined: an attack is on a tool's results, or on the replies of a URL"
        return reader.report_conflict(node.get_key("tool"), message)
    if common.get("tool") == INPUT:
        return reader.report(node.get("tool"), f"{INPUT} is the agent's input", hint=f"write [{INPUT[0]}]{INPUT[1:]}")
    return str(common.get("tool", "*"))


def _build_entry(
    reader: Reader, family: Family, common: dict[str, Any], chosen: ChosenVariant, node: Node
) -> FaultEntry | Bad:
    schedule = (
        {key: common[key] for key in Schedule.__struct_fields__ if key in common}
        if family.name != "world_faults"
        else {}
    )
    if "trigger_probability" in common:
        schedule["probability"] = common["trigger_probability"]
    target: str | Bad = common.get(family.target, "*") if family.target else "*"
    if family.name == "context_attacks":
        # An attack is the one family without a fixed kind of target: it changes the input, the results of tools, or the
        # replies of a URL, depending on the plug-in and its keys.
        target = _get_attack_target(reader, common, chosen, node)
    if isinstance(target, Bad):
        return BAD
    # A fault of the world has no calls to count. When it begins is one of its settings, not a schedule.
    settings = dict(chosen.settings)
    settings |= {key: common[key] for key in _BEGINS if family.name == "world_faults" and common.get(key) is not None}
    injection = Injection(
        family.plane,
        target,
        chosen.choice.name,
        settings,
        Schedule(**schedule),
        match_url=common.get("match_url") if family.target != "match_url" else None,
        raises=common.get("raises"),
        position=node.position,
    )
    return FaultEntry(family, injection, chosen.plugin, node)
