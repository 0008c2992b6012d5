"""An example of a fault or check in YAML, made from the examples and defaults of its settings."""

from __future__ import annotations

from typing import Any

from holdfast.protocols.check import Check
from holdfast.protocols.fault import read_traits
from holdfast.reading.fields import Field, keys_of
from holdfast.spec.fault_entry import Family, is_on_input

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
