"""The JSON Schema of a whole file, for editors."""

from __future__ import annotations

import types
from typing import Any, Union, get_args, get_origin

import msgspec

from holdfast.model.spec import Aggregation, ToolRef
from holdfast.reading.fields import Schema, keys_of, peel
from holdfast.spec.fault_entry import FAMILIES, FaultEntry
from holdfast.spec.fault_schema import fault_definitions, fault_schema
from holdfast.spec.rule_schema import check_schema, checks, rule_definitions, rule_schema
from holdfast.spec.rules import RuleEntry
from holdfast.spec.schema import closed
from holdfast.spec.sections.file import File
from holdfast.spec.service_entry import ServiceEntry
from holdfast.spec.service_schema import service_schema, service_types

DIALECT = "https://json-schema.org/draft/2020-12/schema"
NAME = "urn:holdfast:spec"
"""A name and no address: nobody has to host it."""


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
    """The type and every section type reachable from it, with the place of each in the file."""
    places: dict[type, str] = {kind: ""}
    waiting = [kind]
    while waiting:
        current = waiting.pop(0)
        for field in keys_of(current):
            for inner in _structs(field.hint.base):
                if inner not in places:
                    many = "[]" if get_origin(peel(field.hint.base).base) in (tuple, list) else ""
                    places[inner] = f"{places[current]}.{field.key}{many}".lstrip(".")
                    waiting.append(inner)
    return places


def _structs(hint: Any) -> list[type]:
    base = peel(hint).base
    if base in (RuleEntry, FaultEntry, ServiceEntry, ToolRef, Aggregation):  # written in forms of their own
        return []
    if isinstance(base, type) and issubclass(base, msgspec.Struct):
        return [base]
    if get_origin(base) in (Union, types.UnionType, tuple, dict, list):
        return [found for arg in get_args(base) if arg is not Ellipsis for found in _structs(arg)]
    return []
