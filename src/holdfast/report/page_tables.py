"""A run as the tables of its page, and how they are packed."""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from holdfast.model.codec import encode
from holdfast.model.run import CellRow, Run
from holdfast.model.standards import standards_of
from holdfast.report import wording
from holdfast.report.page_data import CellTable, Interned, TrialTable, column_row, rule_rows
from holdfast.report.page_limits import PageLimits, counted

NOT_HERE = "its trials are not in this page; see the note above the matrix"
_PIECE = 2_000
"""Entries of a table that are written at once."""


def packed(tables: Mapping[str, Any]) -> Iterator[str]:
    """The page's data, piece by piece: JSON, gzip, base64. Equal runs give equal text."""
    press = zlib.compressobj(9, wbits=31)
    rest = b""
    for data in _written(tables):
        rest += press.compress(data)
        whole = len(rest) - len(rest) % 3
        yield b64encode(rest[:whole]).decode("ascii")
        rest = rest[whole:]
    yield b64encode(rest + press.flush()).decode("ascii")


def _written(tables: Mapping[str, Any]) -> Iterator[bytes]:
    """The tables as JSON, a long list a piece at a time."""
    opening = b"{"
    for name, table in tables.items():
        yield opening + encode(name) + b":"
        if isinstance(table, list) and len(table) > _PIECE:
            for start in range(0, len(table), _PIECE):
                yield (b"," if start else b"[") + encode(table[start : start + _PIECE])[1:-1]
            yield b"]"
        else:
            yield encode(table)
        opening = b","
    yield b"}"


class PageTables:
    """A run as tables, and what the page says beside them; made in one walk through the cells."""

    def __init__(self, run: Run, listed: int) -> None:
        self._run = run
        self._limits = PageLimits(run)
        strings = Interned()
        strings.of("")
        cells = CellTable(strings)
        trials = TrialTable(strings)
        self.troubled = Troubled(listed)
        for row in run.cells:
            self.troubled.add(row)
            if self._limits.takes(row):
                self._add(row, cells, trials)
        self.tables = {
            "rules": rule_rows(run, list(cells.rules)),
            "columns": [column_row(run, cell) for cell in cells.heads.values()],
            "cells": cells.columns,
            "trials": trials.columns,
            "more": trials.more,
            "faults": trials.faults.values,
            "standards": {
                mode: [[one.id, one.title, one.list] for one in found]
                for mode in dict.fromkeys(i.mode for scenario in run.scenarios for i in scenario.injections)
                if (found := standards_of("fault", mode))
            },
            "calls": trials.calls.values,
            "strings": strings.values,
        }

    def _add(self, row: CellRow, cells: CellTable, trials: TrialTable) -> None:
        kept, held = self._limits.trials(row), row.cell.outcome in ("pass", "n/a")
        left_out = not kept and counted(row) > 0
        cells.add(self._run, row, len(trials), NOT_HERE if left_out else "")
        for trial in islice(row.trials, kept) if kept else ():
            trials.add(trial, held)

    @property
    def lacks(self) -> str:
        """What the page does not hold, in words; nothing if it has all."""
        return self._limits.said(self._run)


class Troubled:
    """The worst cells that did not hold, in the order of `wording.troubled`, and how many there are."""

    def __init__(self, listed: int) -> None:
        self._listed = listed
        self._worst: list[tuple[tuple[int, bool, float], int, CellRow]] = []
        self.total = 0

    def add(self, row: CellRow) -> None:
        if row.cell.outcome not in wording.TROUBLE:
            return
        self._worst.append((wording.badness(row), self.total, row))
        self.total += 1
        if len(self._worst) > 4 * self._listed:
            self._cut()

    def rows(self) -> list[CellRow]:
        self._cut()
        return [row for _, _, row in self._worst]

    def _cut(self) -> None:
        self._worst.sort(key=lambda entry: entry[:2])
        del self._worst[self._listed :]
