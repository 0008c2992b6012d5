"""Scenarios of the chaos matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from msgspec import Struct
from msgspec.structs import asdict

from holdfast import plugins
from holdfast.faults import profiles
from holdfast.reading.fields import Schema, ValueForm, about
from holdfast.reading.node import Node, build_node, join_path
from holdfast.reading.reader import Bad, Reader
from holdfast.reading.words import suggest_name
from holdfast.spec.catalogue.schema import (
    build_section_schema,
    build_selector,
    build_shared_refs,
    build_variant,
    get_first_line,
    list_required,
)
from holdfast.spec.rules.fault_entry import FAMILIES, FaultEntry, read_faults


def _list_form(name: str) -> ValueForm:
    """Return the form of a list of faults."""

    def read(reader: Reader, node: Node) -> Any:
        return read_faults(reader, name, node)

    words = "a list, or a map of type to settings" if name == "context_attacks" else "a list of faults"
    return ValueForm(read, lambda: build_faults_schema(name), words)


def _read_profile(reader: Reader, node: Node) -> Any:
    if node.kind != "text":
        return reader.report_type(node, "a profile's name")
    if node.text not in profiles.list_profiles():
        hint = suggest_name(node.text, profiles.list_profiles(), label="profiles")
        return reader.report(node, f"unknown profile {node.text[:60]!r}", hint=hint, code="unknown-value")
    return node.text


PROFILE = ValueForm(_read_profile, lambda: {"enum": profiles.list_profiles()}, "a profile's name")


class ChaosSection(Struct, frozen=True, kw_only=True):
    """Faults of `run --chaos`. They do not apply to the contract's scenarios."""

    at: Node
    tool_faults: Annotated[tuple[FaultEntry, ...], _list_form("tool_faults"), about("Faults on tools.")] = ()
    llm_faults: Annotated[tuple[FaultEntry, ...], _list_form("llm_faults"), about("Faults on the model.")] = ()
    context_attacks: Annotated[
        tuple[FaultEntry, ...], _list_form("context_attacks"), about("Attacks on what the agent reads.")
    ] = ()


class MatrixEntry(Struct, frozen=True, kw_only=True):
    """A scenario: a named set of faults. Without faults it is calm."""

    at: Node
    name: Annotated[str, about("Its name.", min_length=1)]
    profile: Annotated[str | None, PROFILE, about("A built-in set of faults, applied before the scenario's own.")] = (
        None
    )
    tool_faults: Annotated[tuple[FaultEntry, ...], _list_form("tool_faults"), about("Faults on tools.")] = ()
    llm_faults: Annotated[tuple[FaultEntry, ...], _list_form("llm_faults"), about("Faults on the model.")] = ()
    context_attacks: Annotated[
        tuple[FaultEntry, ...], _list_form("context_attacks"), about("Attacks on what the agent reads.")
    ] = ()
    mcp_faults: Annotated[tuple[FaultEntry, ...], _list_form("mcp_faults"), about("Faults on MCP servers.")] = ()
    http_faults: Annotated[tuple[FaultEntry, ...], _list_form("http_faults"), about("Faults on HTTP requests.")] = ()
    service_faults: Annotated[tuple[FaultEntry, ...], _list_form("service_faults"), about("Faults on services.")] = ()
    world_faults: Annotated[tuple[FaultEntry, ...], _list_form("world_faults"), about("Faults on the sandbox.")] = ()

    @property
    def own_faults(self) -> tuple[FaultEntry, ...]:
        """Its own faults, family by family."""
        values = asdict(self)
        return tuple(fault for family in FAMILIES for fault in values[family])


class FaultSet(Struct, frozen=True):
    """Faults of a profile that act together; `name` is empty if the profile is one scenario."""

    name: str
    faults: tuple[FaultEntry, ...]


def read_profile_sets(reader: Reader, profile: str, at: Node) -> tuple[FaultSet, ...]:
    """Return the faults of a profile, positioned where it is named: one set, or one for each of its scenarios."""
    written = profiles.load_profile(profile)
    if "scenarios" not in written:
        return (FaultSet("", _read_profile_faults(reader, written, at)),)
    return tuple(
        FaultSet(scenario["name"], _read_profile_faults(reader, scenario, at)) for scenario in written["scenarios"]
    )


def _read_profile_faults(reader: Reader, written: Mapping[str, Any], at: Node) -> tuple[FaultEntry, ...]:
    placed: list[FaultEntry] = []
    for family in FAMILIES:
        if family in written:
            read = read_faults(reader, family, build_node(written[family], at, join_path(at.path, family)))
            placed += () if isinstance(read, Bad) else read
    return tuple(placed)


def list_modes(name: str) -> Iterator[tuple[str, type]]:
    """Return every mode of a family with its settings type."""
    return plugins.list_plugins(FAMILIES[name].registry)


def build_faults_schema(name: str) -> Schema:
    """Return the schema of the list; for context attacks also of the map form."""
    listed: Schema = {"type": "array", "items": {"$ref": f"#/$defs/{name}"}}
    if name != "context_attacks":
        return listed
    family = FAMILIES[name]
    common = {k: v for k, v in build_shared_refs(family.keys, family.keys.__name__).items() if k != "type"}
    by_mode: dict[str, Schema] = {}
    for mode, kind in list_modes(name):
        variant = build_variant(
            {**common, **build_shared_refs(kind, f"{name}.{mode}")}, list_required(kind), get_first_line(kind)
        )
        by_mode[mode] = variant if list_required(kind) else {"anyOf": [variant, {"type": "null"}]}
    return {"anyOf": [listed, build_variant(by_mode, [], "Type to settings.")]}


def build_fault_schema(name: str) -> Schema:
    """Return the schema of one entry of the list, by its mode."""
    family = FAMILIES[name]
    common = build_shared_refs(family.keys, family.keys.__name__)
    return {
        "anyOf": [
            build_variant(
                {**common, **build_shared_refs(kind, f"{name}.{mode}"), family.selector: build_selector(mode, kind)},
                [*list_required(family.keys), *list_required(kind)],
                get_first_line(kind),
            )
            for mode, kind in list_modes(name)
        ]
    }


def build_fault_definitions() -> dict[str, Schema]:
    """Return definitions that the lists refer to: the keys of each family, and the settings of each mode."""
    keys = {family.keys.__name__: build_section_schema(family.keys) for family in FAMILIES.values()}
    return keys | {f"{name}.{mode}": build_section_schema(kind) for name in FAMILIES for mode, kind in list_modes(name)}
