"""The JSON Schema of the complete format, for editors."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any, Union, get_args, get_origin

import msgspec

from holdfast import plugins, service_kinds
from holdfast.model.spec import Aggregation, ToolRef
from holdfast.model.world import CONTAINER
from holdfast.reading.fields import Schema, get_keys, parse_hint
from holdfast.spec.catalogue.schema import (
    build_properties,
    build_section_schema,
    build_selector,
    build_shared_refs,
    build_variant,
    get_first_line,
    list_required,
)
from holdfast.spec.rules.fault_entry import FAMILIES, FaultEntry
from holdfast.spec.rules.matrix import build_fault_definitions, build_fault_schema
from holdfast.spec.rules.rules import RuleEntry, RuleKeys
from holdfast.spec.sections.file import File
from holdfast.spec.sections.world import ImageKeys, ServiceEntry, ServiceKeys


def iter_service_types() -> Iterator[tuple[str, type]]:
    """Yield every type that an entry may have, with the class that declares its keys."""
    for name in service_kinds.list_types():
        kind = service_kinds.find(name)
        if kind is not None:
            yield name, ImageKeys if name == CONTAINER else kind


def _build_service_entry(name: str, kind: type) -> Schema:
    required_keys = [*list_required(ServiceKeys), *list_required(kind), *(() if name == CONTAINER else ("type",))]
    return build_variant(
        {**build_properties(ServiceKeys), **build_properties(kind), "type": build_selector(name, kind)},
        required_keys,
        get_first_line(kind),
    )


def build_rule_schema(*, ids: bool, named: bool = False) -> Schema:
    """Return the schema of one rule: flat by its type, or with a nested check."""
    common = build_shared_refs(RuleKeys, RuleKeys.__name__)
    if named:
        del common["id"]
    required_keys = ["id"] if ids else []
    nested = build_variant(
        {**common, "check": {"$ref": "#/$defs/Check"}}, [*required_keys, "check"], "A rule with its check inside."
    )
    return {"anyOf": [nested, *_build_typed_checks(common, required_keys)]}


def _build_typed_checks(common: dict[str, Schema], required_keys: list[str]) -> list[Schema]:
    """Return an alternative for each check: the common keys, its type and its settings."""
    return [
        build_variant(
            {**common, "type": build_selector(name, kind), **build_shared_refs(kind, f"checks.{name}")},
            [*required_keys, "type", *list_required(kind)],
            get_first_line(kind),
        )
        for name, kind in plugins.list_plugins("checks")
    ]


DIALECT = "https://json-schema.org/draft/2020-12/schema"
NAME = "urn:holdfast:spec"
"""A name, not an address: nobody has to host it."""


def build_json_schema() -> Schema:
    """Return the JSON Schema 2020-12 of a spec: every section, check and fault."""
    checks, services = list(plugins.list_plugins("checks")), list(iter_service_types())
    kinds = [File, *(kind for _, kind in (*checks, *services))]
    inside = [part for kind in kinds for part in find_sections(kind) if part is not kind]
    definitions: dict[str, Schema] = {kind.__name__: build_section_schema(kind) for kind in inside}
    definitions |= {
        "Rule": build_rule_schema(ids=True),
        "RunRule": build_rule_schema(ids=False),
        "NamedRule": build_rule_schema(ids=False, named=True),
        "Check": {"anyOf": _build_typed_checks({}, [])},
        "Service": {"anyOf": [_build_service_entry(name, kind) for name, kind in services]},
    }
    definitions |= {name: build_fault_schema(name) for name in FAMILIES}
    definitions[RuleKeys.__name__] = build_section_schema(RuleKeys)
    definitions |= {f"checks.{name}": build_section_schema(kind) for name, kind in checks}
    definitions |= build_fault_definitions()
    return {
        "$schema": DIALECT,
        "$id": NAME,
        "title": "Holdfast spec",
        **build_section_schema(File),
        "$defs": definitions,
    }


def find_sections(kind: type) -> dict[type, str]:
    """Return the type and every section type reachable from it, each with its place in the file."""
    # Breadth first, so that each section is listed at its shortest place in the file, and a section that occurs in
    # several places is described once.
    places: dict[type, str] = {kind: ""}
    waiting = [kind]
    while waiting:
        current = waiting.pop(0)
        for field in get_keys(current):
            for inner in _find_structs(field.hint.base):
                if inner not in places:
                    many = "[]" if get_origin(parse_hint(field.hint.base).base) in (tuple, list) else ""
                    places[inner] = f"{places[current]}.{field.key}{many}".lstrip(".")
                    waiting.append(inner)
    return places


def _find_structs(hint: Any) -> list[type]:
    base = parse_hint(hint).base
    if base in (RuleEntry, FaultEntry, ServiceEntry, ToolRef, Aggregation):  # they have formats of their own
        return []
    if isinstance(base, type) and issubclass(base, msgspec.Struct):
        return [base]
    if get_origin(base) in (Union, types.UnionType, tuple, dict, list):
        return [struct for arg in get_args(base) if arg is not Ellipsis for struct in _find_structs(arg)]
    return []
