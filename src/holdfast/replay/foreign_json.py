"""Reads third-party JSON without trusting its shape."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

import msgspec

from holdfast.model.codec import encode

_PACKED = 3
"""How many times JSON may be nested inside strings."""
_UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)


def read_at(value: Any, *path: str) -> Any:
    """Return the value at a path of keys; None if there is none."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def read_text(value: Any, *path: str) -> str:
    """Return the same as text; empty if there is none."""
    value_at = read_at(value, *path)
    if isinstance(value_at, str):
        return value_at
    return str(value_at) if isinstance(value_at, int | float) and not isinstance(value_at, bool) else ""


def read_list(value: Any, *path: str) -> list[Any]:
    """Return the same as a list; empty if it is not one."""
    value_at = read_at(value, *path)
    return value_at if isinstance(value_at, list) else []


def read_first(value: Any, *keys: str) -> Any:
    """Return the first non-empty value among these keys."""
    return next((value_at for key in keys if (value_at := read_at(value, key)) not in (None, "", [], {})), None)


def group_numbered(attributes: Any, pattern: re.Pattern[str]) -> list[dict[str, Any]]:
    """Return the maps that flat keys describe: `prompt.0.role` is the `role` of the first one.

    The pattern matches the number and the rest of such a key.
    """
    by_number: defaultdict[int, dict[str, Any]] = defaultdict(dict)
    for key, value in attributes.items() if isinstance(attributes, dict) else ():
        if part := pattern.fullmatch(key):
            by_number[int(part[1])][part[2]] = value
    return [by_number[number] for number in sorted(by_number)]


def decode_json(value: Any) -> Any:
    """Return the map or list that a text holds as JSON; otherwise the value itself."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return msgspec.json.decode(value)
    except _UNREADABLE:
        return value


def unpack_json(value: Any) -> Any:
    """Return the JSON in a text, repeatedly: exporters nest JSON in strings again and again."""
    for _ in range(_PACKED):
        quoted = isinstance(value, str) and value[:1] == '"' and value[-1:] == '"'
        if not quoted:
            return decode_json(value)
        try:
            value = msgspec.json.decode(value)
        except _UNREADABLE:
            return value
    return decode_json(value)


def to_json(value: Any) -> str:
    """Return a value in the form of a recorded response."""
    return encode(value).decode()


def to_seconds(value: Any) -> float | None:
    """Return the seconds since 1970: from an ISO date, or a number of nanoseconds, milliseconds or seconds."""
    if isinstance(value, bool) or value in (None, ""):
        return None
    if isinstance(value, datetime):
        return value.replace(tzinfo=value.tzinfo or UTC).timestamp()
    try:
        number = float(value)
    except (TypeError, ValueError):
        return _parse_date(str(value))
    for most, unit in ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6)):
        if abs(number) < most:
            return number / unit
    return number / 1e9


def _parse_date(value: str) -> float | None:
    try:
        read = datetime.fromisoformat(value)
    except ValueError:
        return None
    return read.replace(tzinfo=read.tzinfo or UTC).timestamp()


def to_iso(value: float | None) -> str:
    """Return the time in a session's format."""
    if value is None or not -6e10 < value < 2.5e11:
        return ""
    return datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds")


def compute_duration_ms(began: Any, ended: Any) -> float:
    """Return the milliseconds between two times; 0 if one is unknown."""
    start, end = to_seconds(began), to_seconds(ended)
    return 0.0 if start is None or end is None else max(0.0, round((end - start) * 1000, 3))
