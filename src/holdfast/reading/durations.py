"""Reads durations (an integer in ms, or text with a unit) and values that are always text."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeAlias

from holdfast.reading.fields import Schema, ValueForm
from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.reading.words import describe


def _read_written(reader: Reader, node: Node) -> Any:
    if node.kind in ("text", "int", "float", "bool"):
        return node.text
    return reader.report_type(node, "text")


Written: TypeAlias = Annotated[
    str, ValueForm(_read_written, lambda: {"type": ["string", "number", "boolean"]}, "text, or a number as written")
]


_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
_DURATION = r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)"
_DAY_MS = 24 * 3_600_000
_LONGEST = 100
"""The longest text in characters that is matched; a longer one is not a duration and would match slowly."""


def parse_duration(text: str) -> float | None:
    """Return the milliseconds of a text such as `500ms`, `30s`, `5m`, `1h` or `1h30m`; None if it is not a duration."""
    compact = text.strip()
    if len(compact) > _LONGEST:
        return None
    # All parts together must be the complete text: whatever is left after removing them shows that it is not a
    # duration.
    parts = re.findall(_DURATION, compact)
    if not parts or re.sub(_DURATION, "", compact).strip():
        return None
    return sum(float(number) * _UNITS_MS[unit] for number, unit in parts)


def _build_duration_form(low: int, high: int) -> ValueForm:
    def read(reader: Reader, node: Node) -> Any:
        if node.kind == "int":
            if low <= node.value <= high:
                return node.value
            message = f"expected {low} to {high} ms, found {describe(node)}"
            return reader.report(
                node, message, hint="an integer is in ms; text has a unit: 30s, 5m", code="out-of-range"
            )
        value = parse_duration(node.text) if node.kind == "text" else None
        if value is None:
            return reader.report_type(node, "a duration", hint="write 500ms, 30s, 5m or 1h")
        if (value < 1 and low > 0) or value > _DAY_MS:
            return reader.report_type(node, "up to 24h", code="out-of-range")
        return round(value)

    def build_schema() -> Schema:
        text = {"type": "string", "pattern": r"^\s*(\d+(\.\d+)?\s*(ms|s|m|h)\s*)+$"}
        return {"anyOf": [{"type": "integer", "minimum": low, "maximum": high}, text]}

    words = f"ms ({low} to {high}), or text with a unit up to 24h"
    return ValueForm(read, build_schema, words, example=f"{max(low, 1_000)}ms")


AgentTimeout: TypeAlias = Annotated[int, _build_duration_form(1_000, 300_000)]
Duration: TypeAlias = Annotated[int, _build_duration_form(0, _DAY_MS)]
