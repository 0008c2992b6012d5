"""The rows of a result, kept in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.protocols import Rows
from holdfast.world.services.values import as_json, size

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
