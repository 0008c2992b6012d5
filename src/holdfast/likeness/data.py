"""Compares JSON as JSON, code word by word, tables by cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

from holdfast.likeness.align import Conflict
from holdfast.likeness.blocks import TextTable

TextComparison = Callable[[str, str], Iterator[Conflict]]
_CODE = re.compile(r"\w+|[^\w\s]")
_COMMENT = re.compile(r"^\s*(?:#|//|--).*$", re.MULTILINE)


def compare_data(expected: Any, actual: Any, texts: TextComparison, path: str = "") -> Iterator[Conflict]:
    """Compare data: keys in any order, values by type, lists in order; longer texts may be worded differently."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            at = f"{path}.{key}" if path else str(key)
            if key not in actual or key not in expected:
                yield Conflict("data", at if key in expected else "", at if key in actual else "")
            else:
                yield from compare_data(expected[key], actual[key], texts, at)
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            yield Conflict("data", f"{path}: {len(expected)} items", f"{len(actual)} items")
        for n, (ours, theirs) in enumerate(zip(expected, actual, strict=False)):
            yield from compare_data(ours, theirs, texts, f"{path}[{n}]")
    elif isinstance(expected, str) and isinstance(actual, str):
        if expected.split() != actual.split():
            yield from texts(expected, actual)
    elif isinstance(expected, bool) != isinstance(actual, bool) or expected != actual:
        yield Conflict("data", f"{path}: {expected!r}", f"{actual!r}")


def compare_code(expected: str, actual: str) -> Iterator[Conflict]:
    """Compare code; whitespace, comment lines and a final semicolon do not matter."""
    ours, theirs = (_CODE.findall(_COMMENT.sub("", text).strip().rstrip(";")) for text in (expected, actual))
    for at, (one, other) in enumerate(zip_longest(ours, theirs, fillvalue="")):
        if one != other:
            yield Conflict("code", " ".join(ours[max(0, at - 2) : at + 2]), " ".join(theirs[max(0, at - 2) : at + 2]))
            return


def compare_tables(expected: TextTable, actual: TextTable, texts: TextComparison) -> Iterator[Conflict] | None:
    """Compare tables by cells: rows by their first cell or in order, columns by header; None if the headers differ."""
    columns = {_normalize_cell(head): n for n, head in enumerate(actual.header)}
    if {_normalize_cell(head) for head in expected.header} != columns.keys() or len(columns) != len(expected.header):
        return None
    order = [columns[_normalize_cell(head)] for head in expected.header]
    rows = {_normalize_cell(row[order[0]]): row for row in actual.rows if len(row) == len(order)}
    if len(rows) != len(expected.rows) or {_normalize_cell(row[0]) for row in expected.rows} != rows.keys():
        return None
    return _compare_cells(expected, rows, order, texts)


def _compare_cells(
    expected: TextTable, rows: dict[str, tuple[str, ...]], order: list[int], texts: TextComparison
) -> Iterator[Conflict]:
    for row in expected.rows:
        other = rows[_normalize_cell(row[0])]
        for head, cell, at in zip(expected.header, row, order, strict=False):
            if _normalize_cell(cell) != _normalize_cell(other[at]):
                for conflict in texts(cell, other[at]):
                    yield conflict._replace(expected=f"{row[0]}, {head}: {conflict.expected}")


def _normalize_cell(cell: str) -> str:
    return re.sub(r"[*_`]", "", cell).strip().casefold()
