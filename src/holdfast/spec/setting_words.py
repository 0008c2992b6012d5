"""A key's type and default in words, as the reference and the page of a plug-in say them."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from holdfast.model.spec import Aggregation
from holdfast.reading.fields import Field
from holdfast.reading.limits import hint_name, range_of


def type_words(field: Field) -> str:
    """Its type with its limits: `a whole number, at least 0`."""
    limits = [range_of(limit) for limit in field.hint.limits if range_of(limit)]
    return ", ".join([hint_name(field.hint), *limits])


def default_words(value: Any) -> str:
    """A default as it may be written; empty if there is none worth telling."""
    if value is None or value is UNSET or value in ("", (), {}, []):
        return ""
    if isinstance(value, Aggregation):
        return value.kind
    if isinstance(value, tuple):
        return ", ".join(str(item) for item in value)
    if isinstance(value, str | int | float | bool):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return ""
