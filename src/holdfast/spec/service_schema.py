"""JSON Schema of the services, from the registry."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast import service_kinds
from holdfast.model.world import CONTAINER
from holdfast.reading.fields import Schema
from holdfast.spec.schema import first_line, properties, required, selected, variant
from holdfast.spec.sections.world import ImageKeys, ServiceKeys


def service_types() -> Iterator[tuple[str, type]]:
    """Every type that an entry may have, with what declares its keys."""
    for name in service_kinds.types():
        kind = service_kinds.find(name)
        if kind is not None:
            yield name, ImageKeys if name == CONTAINER else kind


def service_schema() -> Schema:
    """One entry of `services`, by its type."""
    return {"anyOf": [_entry(name, kind) for name, kind in service_types()]}


def _entry(name: str, kind: type) -> Schema:
    needed = [*required(ServiceKeys), *required(kind), *(() if name == CONTAINER else ("type",))]
    return variant(
        {**properties(ServiceKeys), **properties(kind), "type": selected(name, kind)}, needed, first_line(kind)
    )
