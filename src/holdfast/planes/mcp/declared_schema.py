"""Whether a client takes a result: the official ones refuse what does not fit the schema that its tool declares."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from msgspec import UNSET, UnsetType

from holdfast.reading.json_schema import validator

REFUSED = "the client refuses it: it does not fit the schema that the tool declares"


class DeclaredSchema:
    """The schema of one tool, compiled when it is first needed."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema

    @cached_property
    def _validator(self) -> Any:
        try:
            return validator(self._schema)
        except ValueError:
            return None

    def takes(self, structured: Any) -> bool | None:
        """Whether it is valid; None if that cannot be told: the schema is none, or refers to what it does not hold."""
        try:
            return None if self._validator is None else bool(self._validator.is_valid(structured))
        except ValueError:  # nested too deeply
            return None


def declared(tool: Mapping[str, Any]) -> DeclaredSchema | None:
    """The schema that a tool in a listing declares for its structured results."""
    schema = tool.get("outputSchema")
    return DeclaredSchema(schema) if isinstance(schema, dict) else None


def fits(schema: DeclaredSchema | UnsetType | None, structured: Any, before: Any = UNSET) -> bool:
    """Whether structured content is taken; UNSET is none. Of a tool that was never listed, or whose schema cannot be
    read: if it has the shape of what the server gave, for a client may look the schema up when it has the result."""
    if schema is None:
        return True
    if structured is UNSET:
        return before is UNSET and schema is UNSET
    valid = None if schema is UNSET else schema.takes(structured)
    if valid is None:
        return before is UNSET or _alike(before, structured)
    return valid


def _alike(before: Any, now: Any) -> bool:
    """The same fields, and items like the first."""
    if isinstance(before, dict):
        return isinstance(now, dict) and list(before) == list(now) and all(_alike(before[key], now[key]) for key in now)
    if isinstance(before, list):
        return isinstance(now, list) and all(_alike(before[0], one) for one in now if before)
    if isinstance(before, bool) or isinstance(now, bool):
        return type(before) is type(now)
    numbers = isinstance(before, int | float) and isinstance(now, int | float)
    return numbers or type(before) is type(now)
