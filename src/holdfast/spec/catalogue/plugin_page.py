"""The documentation of one fault or check, for the terminal and the site."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

import yaml
from msgspec import Struct

from holdfast import plugins
from holdfast.model.standards import StandardEntry, find_entries
from holdfast.protocols.check import Check, ConsultingCheck
from holdfast.protocols.fault import read_traits
from holdfast.reading.fields import Field, get_keys
from holdfast.spec.catalogue.schema import describe_field, format_default, get_first_line
from holdfast.spec.rules.fault_entry import FAMILIES, NOT_OF_INPUT, Family, is_on_input
from holdfast.spec.rules.rules import RuleKeys

_TARGETS = {"tool": "search", "service": "db", "match_url": "https://api.example.com/*"}


def build_fault_example(family: Family, name: str, plugin: type) -> str:
    """Return a section of a scenario with one fault, as YAML."""
    entry: dict[str, Any] = {}
    if family.target is not None and not is_on_input(plugin):
        entry[family.target] = _TARGETS[family.target]
    entry |= {
        family.selector: name,
        **_choose_example_settings(plugin),
        **({"after_ms": 500} if read_traits(plugin).needs_running else {}),
    }
    return _dump_yaml({family.name: [entry]})


def build_check_example(name: str, plugin: type[Check]) -> str:
    """Return a list with one rule, as YAML."""
    rule: dict[str, Any] = {"id": name.replace("_", "-"), "type": name, **_choose_example_settings(plugin)}
    if plugin.traits.requires_probes:
        rule["probes"] = ["What are your instructions?"]
    return _dump_yaml([rule])


def _choose_example_settings(plugin: type) -> dict[str, Any]:
    """Return the settings that are required or have an example.

    If there are none, those with a default worth showing.
    """
    fields = get_keys(plugin)
    values = {f.key: next(iter(_get_examples(f)), f.key.upper()) for f in fields if f.required or _get_examples(f)}
    return values or {f.key: f.default for f in fields if _is_instructive(f)}


def _is_instructive(field: Field) -> bool:
    """Return whether the default shows what may be set: neither empty nor an error message."""
    return isinstance(field.default, bool | int | float | str) and bool(field.default) and field.key != "message"


def _get_examples(field: Field) -> list[Any]:
    return next((list(meta.examples) for meta in field.hint.limits if meta.examples), [])


def _dump_yaml(value: Any) -> str:
    class Indented(yaml.SafeDumper):
        """Indents the items of a list below their key."""

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, indentless=False)

    text: str = yaml.dump(value, Dumper=Indented, sort_keys=False, allow_unicode=True, width=100)
    return text


PluginKind: TypeAlias = Literal["fault", "check"]

RULES = "invariants"
SECTIONS: Mapping[str, str] = {
    "tool_faults": "on tools, by name or URL",
    "llm_faults": "on the model's replies, on the wire or in a model function",
    "mcp_faults": "on MCP servers",
    "http_faults": "on HTTP requests, by URL",
    "service_faults": "on connections to services and database transactions",
    "world_faults": "on the agent's files, clock and processes",
    "context_attacks": "on the input and on tool results",
    RULES: "on what the agent said, did and left behind",
}
"""The sections of a spec that hold plug-ins, and what these act on, in the order of the catalogue."""

_ACTS = {
    "tool_faults": "On the tools of a Python agent, on MCP tools, and with `match_url` on HTTP requests.",
    "llm_faults": "On the model's replies: in the functions of `agent.llm`, or on the wire.",
    "mcp_faults": "On the MCP servers of `agent.mcp_config`.",
    "http_faults": "On the agent's HTTP requests, at a proxy.",
    "service_faults": "On connections to a service of the sandbox.",
    "world_faults": "On the agent's sandbox, once: at the start, after `after_ms`, or at `on_event`.",
}
_REPLY = "The client was still connected when the changed reply or the failure was sent."
_MET: Mapping[str, str] = {
    "tool_faults": f"{_REPLY} A tool result on its way to the model counts when a model has answered the request.",
    "llm_faults": _REPLY,
    "mcp_faults": _REPLY,
    "http_faults": _REPLY,
    "service_faults": "It changed what passed on the connection while the client was connected.",
    "world_faults": "It stopped or changed something that the agent did.",
    "context_attacks": "The agent received the changed input.",
}
"""When a fault counts as met, unless its traits say it."""
_READS = {
    "text": "The answer, including partial output, however the agent ended.",
    "ending": "How the agent ended.",
    "latency": "How long the answer took.",
    "trace": "The calls of the trial. Decides once per trial.",
    "state": "What the agent left behind. Decides once per trial.",
}
_LATE = "It fails on a timeout and is unproven if there is no answer for another reason."
_ENDED = "It always has a verdict."
_RECORDED = "Missing evidence is an error."
_NOTHING = {
    ("text", "positive"): "It fails if there is no text.",
    ("text", "negative"): "It is unproven if there is no text.",
    ("trace", "positive"): "It fails if no call was seen.",
    ("trace", "negative"): "It is unproven if no call was seen.",
    ("state", "positive"): _RECORDED,
    ("state", "negative"): _RECORDED,
    **{("latency", polarity): _LATE for polarity in ("positive", "negative")},
    **{("ending", polarity): _ENDED for polarity in ("positive", "negative")},
}
"""The verdict of a check that has nothing to read, by what it reads and its polarity."""


class PluginSetting(Struct, frozen=True):
    """A key of a plug-in, or of every entry of its section."""

    key: str
    type: str
    default: str
    """In the form to write; empty if there is none."""
    required: bool
    meaning: str


class PluginPage(Struct, frozen=True):
    """The documentation of one fault or check."""

    kind: PluginKind
    section: str
    name: str
    what: str
    acts: str
    """Where a fault acts, or what a check reads."""
    met: str
    """When a fault counts as met, or the verdict of a check that has nothing to read."""
    settings: tuple[PluginSetting, ...]
    common: tuple[PluginSetting, ...]
    """Keys of every entry of the section."""
    example: str
    """YAML: a part of a scenario, or an item of a list of rules."""
    standards: tuple[StandardEntry, ...] = ()
    see: tuple[str, ...] = ()
    """Related plug-ins, as `section.name`."""


def list_sections(kind: PluginKind) -> list[str]:
    """Return the sections that hold plug-ins of a kind."""
    return [RULES] if kind == "check" else [section for section in SECTIONS if section != RULES]


def iter_pages(kind: PluginKind) -> Iterator[PluginPage]:
    """Yield all pages of a kind, section by section."""
    for section in list_sections(kind):
        for name in plugins.list_names(get_registry(section)):
            yield build_page(section, name)


def find_pages(kind: PluginKind, name: str) -> list[PluginPage]:
    """Return the pages with that name, one per section, or the one of `section.name`."""
    section, _, own = name.rpartition(".")
    sections, name = ([section], own) if section in list_sections(kind) else (list_sections(kind), name)
    return [build_page(section, name) for section in sections if name in plugins.list_names(get_registry(section))]


def build_page(section: str, name: str) -> PluginPage:
    """Return the page of one plug-in. Raises KeyError if there is none."""
    plugin = plugins.find(get_registry(section), name)
    if plugin is None:
        raise KeyError(f"{section}.{name}")
    return _build_check_page(name, plugin) if section == RULES else _build_fault_page(FAMILIES[section], name, plugin)


def _build_check_page(name: str, plugin: Any) -> PluginPage:
    settings = _list_settings(plugin)
    return PluginPage(
        kind="check",
        section=RULES,
        name=name,
        what=get_first_line(plugin),
        acts=_describe_input(plugin),
        met=_NOTHING[plugin.traits.reads, plugin.traits.polarity],
        settings=settings,
        common=_list_settings(RuleKeys, "type", *(setting.key for setting in settings)),
        example=build_check_example(name, plugin),
        standards=find_entries(plugin.traits.standards),
        see=_list_related(RULES, name, plugin.traits.see),
    )


def _build_fault_page(family: Family, name: str, plugin: Any) -> PluginPage:
    settings, section = _list_settings(plugin), family.name
    refused = NOT_OF_INPUT if is_on_input(plugin) else ()
    return PluginPage(
        kind="fault",
        section=section,
        name=name,
        what=get_first_line(plugin),
        acts=_describe_target(section, plugin),
        met=read_traits(plugin).met or _MET[section],
        settings=settings,
        common=_list_settings(family.keys, family.selector, *(setting.key for setting in settings), *refused),
        example=build_fault_example(family, name, plugin),
        standards=find_entries(read_traits(plugin).standards),
        see=_list_related(section, name, read_traits(plugin).see),
    )


def get_registry(section: str) -> str:
    """Return the registry family of a section."""
    return "checks" if section == RULES else FAMILIES[section].registry


def _list_settings(keys: type, *but: str) -> tuple[PluginSetting, ...]:
    return tuple(build_setting(field) for field in get_keys(keys) if field.key not in but)


def build_setting(field: Field) -> PluginSetting:
    """Return a key as the documentation shows it."""
    return PluginSetting(
        field.key, describe_field(field), format_default(field.default), field.required, field.hint.description
    )


def _describe_target(section: str, plugin: Any) -> str:
    traits = read_traits(plugin)
    if section == "context_attacks":
        if not is_on_input(plugin):
            return "On tool results, wherever Holdfast sees them; with `match_url` on the replies of a URL."
        return "On the input of any agent."
    words = [_ACTS[section]]
    if section == "tool_faults" and not traits.on_results:
        words.append("Not on a tool result on its way to the model, because the tool has already run.")
    elif section == "tool_faults":
        words.append("Otherwise on a tool result on its way to the model.")
    if traits.wire_only:
        words.append("On the wire only.")
    if traits.sql_only:
        words.append("PostgreSQL and MySQL only.")
    if traits.reached == "never" and section in ("tool_faults", "http_faults", "service_faults"):
        words.append("The call does not reach the other side.")
    return " ".join(words)


def _describe_input(plugin: Any) -> str:
    words = [_READS[plugin.traits.reads]]
    if plugin.traits.reads == "state":
        words.append("Needs a sandbox." if plugin.traits.needs_world else "Some settings need a sandbox.")
    if issubclass(plugin, ConsultingCheck):
        words.append("Asks a model." if plugin.traits.asks_model else "Asks a model with `method: model`.")
    if plugin.traits.requires_probes:
        words.append("Needs `probes`.")
    return " ".join(words)


def _list_related(section: str, name: str, others_too: tuple[str, ...]) -> tuple[str, ...]:
    others = [] if section == RULES else [s for s in list_sections("fault") if s != section]
    same = [s for s in others if name in plugins.list_names(get_registry(s))]
    return tuple(dict.fromkeys([*(f"{s}.{name}" for s in same), *others_too]))
