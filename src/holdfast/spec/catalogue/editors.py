"""The JSON Schema of a complete file, for editors."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any, Union, get_args, get_origin

import msgspec

from holdfast import plugins, service_kinds
from holdfast.model.spec import Aggregation, ToolRef
from holdfast.model.world import CONTAINER
from holdfast.reading.fields import Schema, get_keys, parse_hint
from holdfast.spec.catalogue.schema import closed, first_line, properties, required, selected, shared, variant
from holdfast.spec.rules.fault_entry import FAMILIES, FaultEntry
from holdfast.spec.rules.matrix import fault_definitions, fault_schema
from holdfast.spec.rules.rules import RuleEntry, RuleKeys
from holdfast.spec.sections.file import File
from holdfast.spec.sections.world import ImageKeys, ServiceEntry, ServiceKeys


def service_types() -> Iterator[tuple[str, type]]:
    """Every type that an entry may have, with the class that declares its keys."""
    for name in service_kinds.list_types():
        kind = service_kinds.find(name)
        if kind is not None:
            yield name, ImageKeys if name == CONTAINER else kind


def service_schema() -> Schema:
    """One entry of `services`, by its type."""
    return {"anyOf": [_entry(name, kind) for name, kind in service_types()]}


def _entry(name: str, kind: type) -> Schema:
    required_keys = [*required(ServiceKeys), *required(kind), *(() if name == CONTAINER else ("type",))]
    return variant(
        {**properties(ServiceKeys), **properties(kind), "type": selected(name, kind)}, required_keys, first_line(kind)
    )


def checks() -> Iterator[tuple[str, type]]:
    """Every check with its settings type."""
    yield from plugins.list_plugins("checks")


def rule_schema(*, ids: bool, named: bool = False) -> Schema:
    """One rule: flat by its type, or with a nested check."""
    common = shared(RuleKeys, RuleKeys.__name__)
    if named:
        del common["id"]
    required_keys = ["id"] if ids else []
    nested = variant(
        {**common, "check": {"$ref": "#/$defs/Check"}}, [*required_keys, "check"], "A rule with its check inside."
    )
    flat = [
        variant(
            {**common, "type": selected(name, kind), **shared(kind, _definition(name))},
            [*required_keys, "type", *required(kind)],
            first_line(kind),
        )
        for name, kind in checks()
    ]
    return {"anyOf": [nested, *flat]}


def check_schema() -> Schema:
    """The value of `check:`."""
    return {
        "anyOf": [
            variant(
                {"type": selected(name, kind), **shared(kind, _definition(name))},
                ["type", *required(kind)],
                first_line(kind),
            )
            for name, kind in checks()
        ]
    }


def rule_definitions() -> dict[str, Schema]:
    """Definitions that rules refer to: their common keys, and the settings of each check."""
    return {RuleKeys.__name__: closed(RuleKeys)} | {_definition(name): closed(kind) for name, kind in checks()}


def _definition(check: str) -> str:
    return f"checks.{check}"


DIALECT = "https://json-schema.org/draft/2020-12/schema"
NAME = "urn:holdfast:spec"
"""A name, not an address: nobody has to host it."""


def json_schema() -> Schema:
    """JSON Schema 2020-12 of a spec: every section, check and fault."""
    inside = [kind for kind in sections(File) if kind is not File]
    inside += [part for _, kind in checks() for part in sections(kind) if part is not kind]
    inside += [part for _, kind in service_types() for part in sections(kind) if part is not kind]
    definitions: dict[str, Schema] = {kind.__name__: closed(kind) for kind in inside}
    definitions |= {
        "Rule": rule_schema(ids=True),
        "RunRule": rule_schema(ids=False),
        "NamedRule": rule_schema(ids=False, named=True),
        "Check": check_schema(),
        "Service": service_schema(),
    }
    definitions |= {name: fault_schema(name) for name in FAMILIES}
    definitions |= rule_definitions() | fault_definitions()
    return {"$schema": DIALECT, "$id": NAME, "title": "Holdfast spec", **closed(File), "$defs": definitions}


def sections(kind: type) -> dict[type, str]:
    """The type and every section type reachable from it, each with its place in the file."""
    places: dict[type, str] = {kind: ""}
    waiting = [kind]
    while waiting:
        current = waiting.pop(0)
        for field in get_keys(current):
            for inner in _structs(field.hint.base):
                if inner not in places:
                    many = "[]" if get_origin(parse_hint(field.hint.base).base) in (tuple, list) else ""
                    places[inner] = f"{places[current]}.{field.key}{many}".lstrip(".")
                    waiting.append(inner)
    return places


def _structs(hint: Any) -> list[type]:
    base = parse_hint(hint).base
    if base in (RuleEntry, FaultEntry, ServiceEntry, ToolRef, Aggregation):  # they have formats of their own
        return []
    if isinstance(base, type) and issubclass(base, msgspec.Struct):
        return [base]
    if get_origin(base) in (Union, types.UnionType, tuple, dict, list):
        return [struct for arg in get_args(base) if arg is not Ellipsis for struct in _structs(arg)]
    return []
