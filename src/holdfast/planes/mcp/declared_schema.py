"""Whether a client takes a result: the official ones refuse what does not fit the schema that its tool declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, UnsetType

REFUSED = "the client refuses it: it does not fit the schema that the tool declares"


def declared(tool: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema that a tool in a listing declares for its structured results."""
    schema = tool.get("outputSchema")
    return schema if isinstance(schema, dict) else None


def fits(schema: dict[str, Any] | UnsetType | None, structured: Any, before: Any = UNSET) -> bool:
    """Whether structured content is taken; UNSET is none. Of a tool that was never listed: if it has the shape of what
    the server gave, for a client may look the schema up when it has the result."""
    if schema is None:
        return True
    if structured is UNSET:
        return before is UNSET and schema is UNSET
    if schema is UNSET:
        return before is UNSET or _alike(before, structured)
    return _valid(schema, structured)


def _valid(schema: dict[str, Any], structured: Any) -> bool:
    from jsonschema_rs import validator_for

    try:
        return validator_for(schema).is_valid(structured)
    except ValueError:  # a schema that is none: no client can use it
        return True


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
