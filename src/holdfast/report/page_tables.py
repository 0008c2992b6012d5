"""A run as the tables of its page, and how they are packed."""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from holdfast.model.codec import encode
from holdfast.model.run import CellRow, Run
from holdfast.report import wording
from holdfast.report.cause_page import LISTED
from holdfast.report.causes import Cause, Causes
from holdfast.report.page.run import rules
from holdfast.report.page.values import Interned
from holdfast.report.page_data import CellTable, TrialTable, column_row
from holdfast.report.page_limits import PageLimits, counted
from holdfast.report.standards import of_modes

NOT_HERE = "its trials are not in this page; see the note above the matrix"
_LEVEL = 6
"""Level 9 takes two and a half times as long for half a percent."""
_PIECE = 2_000
"""Entries of a table that are written at once."""


def packed(tables: Mapping[str, Any]) -> Iterator[str]:
    """The page's data, piece by piece: JSON, gzip, base64. Equal runs give equal text."""
    press = zlib.compressobj(_LEVEL, wbits=31)
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

    def __init__(self, run: Run) -> None:
        self._run = run
        self._limits = PageLimits(run)
        strings = Interned()
        strings.of("")
        cells = CellTable(strings)
        trials = TrialTable(strings)
        causes = Causes(run)
        placed: dict[tuple[str, str], int] = {}
        """Where in the table a troubled cell stands."""
        for row in run.cells:
            causes.add(row)
            if self._limits.takes(row):
                if row.cell.outcome in wording.TROUBLE:
                    placed[row.cell.invariant, wording.column(row.cell)] = len(cells)
                self._add(row, cells, trials)
        self.causes = causes.sorted()
        """The worst first."""
        self.troubled = causes.total
        """Cells that did not hold."""
        known = {rule["id"]: [*rule.values()] for rule in rules(run)}
        self.tables = {
            "rules": [known.get(id, [id, "", "", "", run.spec_path]) for id in cells.rules],
            "columns": [column_row(run, cell) for cell in cells.heads.values()],
            "cells": cells.columns,
            "trials": trials.columns,
            "more": trials.more,
            "faults": trials.faults.values,
            "standards": {
                mode: [[one.id, one.title, one.list] for one in found]
                for mode in dict.fromkeys(i.mode for scenario in run.scenarios for i in scenario.injections)
                if (found := of_modes((mode,)))
            },
            "calls": trials.calls.values,
            "strings": strings.values,
            "causes": [_cells_of(cause, placed) for cause in self.causes[:LISTED]],
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


def _cells_of(cause: Cause, placed: Mapping[tuple[str, str], int]) -> list[int]:
    """By which the page shows the cells of a cause alone; one cell needs no list."""
    if cause.cells == 1:
        return []
    found = (placed.get((rule, one.head)) for rule, one in zip(cause.member_rules, cause.members, strict=True))
    return [at for at in found if at is not None]
