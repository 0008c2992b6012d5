"""One fault or check on a page: what the terminal shows of it and what the documentation site is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from holdfast import plugins
from holdfast.model.standards import StandardEntry, standard_entries
from holdfast.protocols.check import Check, ConsultingCheck
from holdfast.protocols.fault import read_traits
from holdfast.reading.fields import Field, keys_of
from holdfast.spec.catalogue.schema import default_words, first_line, type_words
from holdfast.spec.rules.fault_entry import FAMILIES, NOT_OF_INPUT, Family, is_on_input
from holdfast.spec.rules.rules import RuleKeys

_TARGETS = {"tool": "search", "service": "db", "match_url": "https://api.example.com/*"}


def fault_example(family: Family, name: str, plugin: type) -> str:
    """A list of a scenario with one entry."""
    entry: dict[str, Any] = {}
    if family.target is not None and not is_on_input(plugin):
        entry[family.target] = _TARGETS[family.target]
    entry |= {
        family.selector: name,
        **_shown(plugin),
        **({"after_ms": 500} if read_traits(plugin).needs_running else {}),
    }
    return _yaml({family.name: [entry]})


def check_example(name: str, plugin: type[Check]) -> str:
    """A list of rules with one."""
    rule: dict[str, Any] = {"id": name.replace("_", "-"), "type": name, **_shown(plugin)}
    if plugin.traits.requires_probes:
        rule["probes"] = ["What are your instructions?"]
    return _yaml([rule])


def _shown(plugin: type) -> dict[str, Any]:
    """What must be given and what has an example; else what has a default that can be written."""
    fields = keys_of(plugin)
    told = {f.key: _first_example(f) for f in fields if f.required or _examples(f)}
    return told or {f.key: f.default for f in fields if _is_telling(f)}


def _is_telling(field: Field) -> bool:
    """A default that shows what may be set: not one that means none, nor the words of an error."""
    return isinstance(field.default, bool | int | float | str) and bool(field.default) and field.key != "message"


def _examples(field: Field) -> list[Any]:
    return next((list(meta.examples) for meta in field.hint.limits if meta.examples), [])


def _first_example(field: Field) -> Any:
    """Of a plug-in that shows none for what it requires, its key in capitals: something to be filled in."""
    return next(iter(_examples(field)), field.key.upper())


def _yaml(value: Any) -> str:
    import yaml

    class Indented(yaml.SafeDumper):
        """Items of a list stand below their key, one step in."""

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, indentless=False)

    text: str = yaml.dump(value, Dumper=Indented, sort_keys=False, allow_unicode=True, width=100)
    return text


PluginKind: TypeAlias = Literal["fault", "check"]

RULES = "invariants"
SECTIONS: Mapping[str, str] = {
    "tool_faults": "on tools, by their name or URL",
    "llm_faults": "on the model's replies, at the wire or in a model function",
    "mcp_faults": "on MCP servers",
    "http_faults": "on HTTP calls, by their URL",
    "service_faults": "on connections to services, and on transactions of databases",
    "world_faults": "on the agent's files, clock and processes",
    "context_attacks": "on the input and on tool results",
    RULES: "on what the agent said, did and left behind",
}
"""Where plug-ins are written in a file, and what they act on there, in the order in which they are told."""

_ACTS = {
    "tool_faults": "On the tools of a Python agent; on MCP tools; with `match_url` on HTTP calls.",
    "llm_faults": "On the replies of the model: in the functions that `agent.llm` names, or at the wire.",
    "mcp_faults": "On the MCP servers of `agent.mcp_config`.",
    "http_faults": "On the agent's HTTP calls, by way of a proxy.",
    "service_faults": "On the connections to a service of the world.",
    "world_faults": "On the agent's place in a sandbox. Once: at the start, `after_ms` later, or `on_event`.",
}
_REPLY = "The changed reply, or the failure, was written while the caller was there for it."
_MET: Mapping[str, str] = {
    "tool_faults": f"{_REPLY} In a result on its way to the model: a model has answered the request that carries it.",
    "llm_faults": _REPLY,
    "mcp_faults": _REPLY,
    "http_faults": _REPLY,
    "service_faults": "It changed what passed on the connection, and a client was there to feel it.",
    "world_faults": "The agent ran into it: what the fault did was seen to stop or change something that it did.",
    "context_attacks": "The agent was asked with the changed input.",
}
"""When a fault counts as met, unless its traits say it."""
_READS = {
    "text": "The text of the answer, partial output included, however the agent ended.",
    "ending": "How the agent ended.",
    "latency": "How long the answer took.",
    "trace": "The calls of the trial, once, whatever the agent answered.",
    "state": "What the agent left behind, once, when it has ended. Needs a sandbox.",
}
_LATE = "It fails on a timeout, and is unproven where there is no answer for another reason."
_ENDED = "However the agent ended, there is a verdict."
_RECORDED = "What was not recorded is an error, never a guess."
_NOTHING = {
    ("text", "positive"): "It asks for something: with no text at all it fails.",
    ("text", "negative"): "It forbids something: with no text at all it is unproven.",
    ("trace", "positive"): "It asks for something: where no call was seen it fails.",
    ("trace", "negative"): "It forbids something: where no call was seen it is unproven.",
    ("state", "positive"): f"It asks for something. {_RECORDED}",
    ("state", "negative"): f"It forbids something. {_RECORDED}",
    **{("latency", polarity): _LATE for polarity in ("positive", "negative")},
    **{("ending", polarity): _ENDED for polarity in ("positive", "negative")},
}
"""What becomes of a check where there is nothing to look at, by what it reads and its polarity."""


class PluginSetting(Struct, frozen=True):
    """A key of a plug-in or of every entry beside it."""

    key: str
    type: str
    default: str
    """As it may be written; empty if there is none."""
    required: bool
    meaning: str


class PluginPage(Struct, frozen=True):
    """All that is to be said of one fault or check."""

    kind: PluginKind
    section: str
    name: str
    what: str
    acts: str
    """Of a fault: where it acts. Of a check: what it reads."""
    met: str
    """Of a fault: when it counts as met. Of a check: what becomes of it where there is nothing to look at."""
    settings: tuple[PluginSetting, ...]
    common: tuple[PluginSetting, ...]
    """Keys of every entry of the section."""
    example: str
    """YAML: a part of a scenario, or an item of a list of rules."""
    standards: tuple[StandardEntry, ...] = ()
    see: tuple[str, ...] = ()
    """Others, as `section.name`."""


def sections_of(kind: PluginKind) -> list[str]:
    """Where plug-ins of a kind are written."""
    return [RULES] if kind == "check" else [section for section in SECTIONS if section != RULES]


def pages(kind: PluginKind) -> Iterator[PluginPage]:
    """All of a kind, section by section."""
    for section in sections_of(kind):
        for name in plugins.names(registry_of(section)):
            yield page(section, name)


def pages_named(kind: PluginKind, name: str) -> list[PluginPage]:
    """Those of that name: one of each section that has it, or the one of `section.name`."""
    section, dot, own = name.rpartition(".")
    if dot and section in sections_of(kind):
        return [page(section, own)] if own in plugins.names(registry_of(section)) else []
    return [page(section, name) for section in sections_of(kind) if name in plugins.names(registry_of(section))]


def page(section: str, name: str) -> PluginPage:
    """The page of one. Raises KeyError if there is none."""
    plugin = plugins.find(registry_of(section), name)
    if plugin is None:
        raise KeyError(f"{section}.{name}")
    return _check_page(name, plugin) if section == RULES else _fault_page(_family(section), name, plugin)


def _check_page(name: str, plugin: Any) -> PluginPage:

    own = _settings(plugin)
    return PluginPage(
        kind="check",
        section=RULES,
        name=name,
        what=first_line(plugin),
        acts=_reads(plugin),
        met=_NOTHING[plugin.traits.reads, plugin.traits.polarity],
        settings=own,
        common=_settings(RuleKeys, "type", *(setting.key for setting in own)),
        example=check_example(name, plugin),
        standards=standard_entries(plugin.traits.standards),
        see=_see(RULES, name, plugin.traits.see),
    )


def _fault_page(family: Family, name: str, plugin: Any) -> PluginPage:

    own, section = _settings(plugin), family.name
    refused = NOT_OF_INPUT if is_on_input(plugin) else ()
    return PluginPage(
        kind="fault",
        section=section,
        name=name,
        what=first_line(plugin),
        acts=_acts(section, plugin),
        met=read_traits(plugin).met or _MET[section],
        settings=own,
        common=_settings(family.keys, family.selector, *(setting.key for setting in own), *refused),
        example=fault_example(family, name, plugin),
        standards=standard_entries(read_traits(plugin).standards),
        see=_see(section, name, read_traits(plugin).see),
    )


def registry_of(section: str) -> str:
    """The family of plug-ins that is written there."""
    return "checks" if section == RULES else _family(section).registry


def _family(section: str) -> Family:
    return next(family for name, family in FAMILIES.items() if name == section)


def _settings(keys: type, *but: str) -> tuple[PluginSetting, ...]:
    return tuple(_setting(field) for field in keys_of(keys) if field.key not in but)


def _setting(field: Field) -> PluginSetting:
    return PluginSetting(
        field.key, type_words(field), default_words(field.default), field.required, field.hint.description
    )


def _acts(section: str, plugin: Any) -> str:
    traits = read_traits(plugin)
    if section == "context_attacks":
        if not is_on_input(plugin):
            return "On the results of tools, wherever they are met; with `match_url` on the replies of a URL."
        return "On what the agent is asked, whatever its kind."
    words = [_ACTS[section]]
    if section == "tool_faults" and not traits.on_results:
        words.append("Not on a tool's result on its way to the model: the tool has run by then.")
    elif section == "tool_faults":
        words.append("Else on a tool's result on its way to the model.")
    if traits.wire_only:
        words.append("At the wire only.")
    if traits.sql_only:
        words.append("Of PostgreSQL and MySQL only.")
    if traits.reached == "never" and section in ("tool_faults", "http_faults", "service_faults"):
        words.append("Nothing arrives at the other side.")
    return " ".join(words)


def _reads(plugin: Any) -> str:
    words = [_READS[plugin.traits.reads]]
    if issubclass(plugin, ConsultingCheck):
        words.append("Asks a model." if plugin.traits.asks_model else "Asks a model where `method: model` says so.")
    if plugin.traits.requires_probes:
        words.append("Needs `probes`.")
    return " ".join(words)


def _see(section: str, name: str, others_too: tuple[str, ...]) -> tuple[str, ...]:
    others = [] if section == RULES else [s for s in sections_of("fault") if s != section]
    same = [s for s in others if name in plugins.names(registry_of(s))]
    return tuple(dict.fromkeys([*(f"{s}.{name}" for s in same), *others_too]))
