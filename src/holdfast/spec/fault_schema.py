"""JSON Schema of the fault lists, from the registries."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast import plugins
from holdfast.reading.fields import Schema
from holdfast.spec.fault_entry import FAMILIES, FamilyName
from holdfast.spec.schema import properties, required, variant


def modes(name: FamilyName) -> Iterator[tuple[str, type]]:
    """Every mode of a family with its settings type."""
    return plugins.catalogue(FAMILIES[name].registry)


def faults_schema(name: FamilyName) -> Schema:
    """The list, and for context attacks the map form too."""
    listed: Schema = {"type": "array", "items": {"$ref": f"#/$defs/{name}"}}
    if name != "context_attacks":
        return listed
    family = FAMILIES[name]
    common = {k: v for k, v in properties(family.keys).items() if k != "type"}
    named: dict[str, Schema] = {}
    for mode, kind in modes(name):
        one = variant({**common, **properties(kind)}, required(kind), kind.__doc__ or "")
        named[mode] = one if required(kind) else {"anyOf": [one, {"type": "null"}]}
    return {"anyOf": [listed, variant(named, [], "Type to settings.")]}


def fault_schema(name: FamilyName) -> Schema:
    """One entry of the list, by its mode."""
    family = FAMILIES[name]
    common = properties(family.keys)
    return {
        "anyOf": [
            variant(
                {**common, **properties(kind), family.selector: {"const": mode}},
                [*required(family.keys), *required(kind)],
                kind.__doc__ or "",
            )
            for mode, kind in modes(name)
        ]
    }
