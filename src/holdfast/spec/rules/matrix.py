"""Scenarios of the chaos matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from msgspec import Struct

from holdfast import plugins
from holdfast.reading.fields import Schema, ValueForm, about
from holdfast.reading.node import Node, build_node, join_path
from holdfast.reading.reader import Bad, Reader
from holdfast.reading.words import suggest_name
from holdfast.spec.catalogue.schema import closed, first_line, required, selected, shared, variant
from holdfast.spec.rules.fault_entry import FAMILIES, FamilyName, FaultEntry, read_faults


def _faults(name: FamilyName) -> ValueForm:
    def read(reader: Reader, node: Node) -> Any:
        return read_faults(reader, name, node)

    words = "a list, or a map of type to settings" if name == "context_attacks" else "a list of faults"
    return ValueForm(read, lambda: faults_schema(name), words)


def _read_profile(reader: Reader, node: Node) -> Any:
    from holdfast.faults import profiles

    if node.kind != "text":
        return reader.report_type(node, "a profile's name")
    if node.text not in profiles.list_profiles():
        hint = suggest_name(node.text, profiles.list_profiles(), label="profiles")
        return reader.report(node, f"unknown profile {node.text[:60]!r}", hint=hint, code="unknown-value")
    return node.text


def _profile_schema() -> Schema:
    from holdfast.faults import profiles

    return {"enum": profiles.list_profiles()}


PROFILE = ValueForm(_read_profile, _profile_schema, "a profile's name")


class ChaosSection(Struct, frozen=True, kw_only=True):
    """Faults of `run --chaos`. They do not apply to the contract's scenarios."""

    at: Node
    tool_faults: Annotated[tuple[FaultEntry, ...], _faults("tool_faults"), about("Faults on tools.")] = ()
    llm_faults: Annotated[tuple[FaultEntry, ...], _faults("llm_faults"), about("Faults on the model.")] = ()
    context_attacks: Annotated[
        tuple[FaultEntry, ...], _faults("context_attacks"), about("Attacks on what the agent reads.")
    ] = ()


class MatrixEntry(Struct, frozen=True, kw_only=True):
    """A scenario: a named set of faults. Without faults it is calm."""

    at: Node
    name: Annotated[str, about("Its name.", min_length=1)]
    profile: Annotated[str | None, PROFILE, about("A built-in set of faults, applied before the scenario's own.")] = (
        None
    )
    tool_faults: Annotated[tuple[FaultEntry, ...], _faults("tool_faults"), about("Faults on tools.")] = ()
    llm_faults: Annotated[tuple[FaultEntry, ...], _faults("llm_faults"), about("Faults on the model.")] = ()
    context_attacks: Annotated[
        tuple[FaultEntry, ...], _faults("context_attacks"), about("Attacks on what the agent reads.")
    ] = ()
    mcp_faults: Annotated[tuple[FaultEntry, ...], _faults("mcp_faults"), about("Faults on MCP servers.")] = ()
    http_faults: Annotated[tuple[FaultEntry, ...], _faults("http_faults"), about("Faults on HTTP requests.")] = ()
    service_faults: Annotated[tuple[FaultEntry, ...], _faults("service_faults"), about("Faults on services.")] = ()
    world_faults: Annotated[tuple[FaultEntry, ...], _faults("world_faults"), about("Faults on the sandbox.")] = ()

    @property
    def own(self) -> tuple[FaultEntry, ...]:
        """Its own faults, family by family."""
        return (
            *self.tool_faults,
            *self.llm_faults,
            *self.context_attacks,
            *self.mcp_faults,
            *self.http_faults,
            *self.service_faults,
            *self.world_faults,
        )


class FaultSet(Struct, frozen=True):
    """Faults of a profile that act together; `name` is empty if the profile is one scenario."""

    name: str
    faults: tuple[FaultEntry, ...]


def profile_sets(reader: Reader, profile: str, at: Node) -> tuple[FaultSet, ...]:
    """The faults of a profile, positioned where it is named: one set, or one for each of its scenarios."""
    from holdfast.faults import profiles

    written = profiles.load_profile(profile)
    if "scenarios" not in written:
        return (FaultSet("", _placed(reader, written, at)),)
    return tuple(FaultSet(one["name"], _placed(reader, one, at)) for one in written["scenarios"])


def _placed(reader: Reader, written: Mapping[str, Any], at: Node) -> tuple[FaultEntry, ...]:
    placed: list[FaultEntry] = []
    for family in FAMILIES:
        if family in written:
            read = read_faults(reader, family, build_node(written[family], at, join_path(at.path, family)))
            placed += () if isinstance(read, Bad) else read
    return tuple(placed)


def modes(name: FamilyName) -> Iterator[tuple[str, type]]:
    """Every mode of a family with its settings type."""
    return plugins.list_plugins(FAMILIES[name].registry)


def faults_schema(name: FamilyName) -> Schema:
    """The schema of the list; for context attacks also of the map form."""
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
    """Definitions that the lists refer to: the keys of each family, and the settings of each mode."""
    keys = {family.keys.__name__: closed(family.keys) for family in FAMILIES.values()}
    return keys | {f"{name}.{mode}": closed(kind) for name in FAMILIES for mode, kind in modes(name)}
