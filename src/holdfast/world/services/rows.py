"""The rows of a result, kept in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from holdfast.protocols.service import Rows

_LARGEST = 2**63
KEPT_BYTES = 10_000_000
"""Of values that one query keeps; rows beyond are only counted."""


class KeptRows:
    """Takes rows one by one; keeps the first, counts all."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._rows: list[tuple[Any, ...]] = []
        self._bytes = 0
        self._count = 0

    def add(self, row: Iterable[Any]) -> None:
        self._count += 1
        if len(self._rows) < self._keep and self._bytes < KEPT_BYTES:
            values = tuple(map(as_json, row))
            self._bytes += sum(map(size, values))
            self._rows.append(values)

    def rows(self, columns: Iterable[str]) -> Rows:
        return Rows(tuple(columns), tuple(self._rows), self._count)


def as_json(value: Any) -> Any:
    """Dates as ISO text, decimals as numbers where that is exact, bytes as text or hex, the rest by its own text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if -_LARGEST <= value < _LARGEST else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes(bytes(value))
    if isinstance(value, dict):
        return {str(key): as_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_json(one) for one in value]
    return str(value)


def _decimal(value: Decimal) -> int | float | str:
    if not value.is_finite():
        return str(value)
    if value == value.to_integral_value() and abs(value) < _LARGEST:
        return int(value)
    number = float(value)
    return number if math.isfinite(number) and Decimal(repr(number)) == value else str(value)


def _bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return "\\x" + value.hex()


def size(value: Any) -> int:
    """About how many bytes a value takes."""
    if isinstance(value, dict):
        return sum(len(key) + size(one) for key, one in value.items())
    if isinstance(value, list):
        return sum(map(size, value))
    return len(value) if isinstance(value, str) else 8
