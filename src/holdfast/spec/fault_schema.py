"""JSON Schema of the fault lists, from the registries."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast import plugins
from holdfast.reading.fields import Schema
from holdfast.spec.fault_entry import FAMILIES, FamilyName
from holdfast.spec.schema import closed, first_line, required, selected, shared, variant


def modes(name: FamilyName) -> Iterator[tuple[str, type]]:
    """Every mode of a family with its settings type."""
    return plugins.catalogue(FAMILIES[name].registry)


def faults_schema(name: FamilyName) -> Schema:
    """The list, and for context attacks the map form too."""
    listed: Schema = {"type": "array", "items": {"$ref": f"#/$defs/{name}"}}
    if name != "context_attacks":
        return listed
    family = FAMILIES[name]
    common = {k: v for k, v in shared(family.keys, family.keys.__name__).items() if k != "type"}
    named: dict[str, Schema] = {}
    for mode, kind in modes(name):
        one = variant({**common, **shared(kind, f"{name}.{mode}")}, required(kind), first_line(kind))
        named[mode] = one if required(kind) else {"anyOf": [one, {"type": "null"}]}
    return {"anyOf": [listed, variant(named, [], "Type to settings.")]}


def fault_schema(name: FamilyName) -> Schema:
    """One entry of the list, by its mode."""
    family = FAMILIES[name]
    common = shared(family.keys, family.keys.__name__)
    return {
        "anyOf": [
            variant(
                {**common, **shared(kind, f"{name}.{mode}"), family.selector: selected(mode, kind)},
                [*required(family.keys), *required(kind)],
                first_line(kind),
            )
            for mode, kind in modes(name)
        ]
    }


def fault_definitions() -> dict[str, Schema]:
    """What the entries of all lists refer to: the keys of each family, and the settings of each mode."""
    keys = {family.keys.__name__: closed(family.keys) for family in FAMILIES.values()}
    return keys | {f"{name}.{mode}": closed(kind) for name in FAMILIES for mode, kind in modes(name)}
