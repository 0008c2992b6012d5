"""The cells of a run: the matrix as columns of numbers over one table of strings, and one cell with its trials."""

from __future__ import annotations

from itertools import islice
from typing import Any

from msgspec.structs import replace

from holdfast.model.codec import make_encodable
from holdfast.model.run import CellRow, Run, TrialRow
from holdfast.model.score import Cell
from holdfast.model.verdict import OUTCOMES
from holdfast.report import wording
from holdfast.report.page.run import Numbering
from holdfast.report.page.values import cut, pick

TRIALS = 500
TEXT = 4_000
"""Characters of a prompt or an answer: the page of the trial has all of it."""
_CODE = {outcome: number for number, outcome in enumerate(OUTCOMES)}


def build_matrix(run: Run, *, live: bool = False) -> dict[str, Any]:
    """Return the matrix. `live`: the run is still running, and cells without a verdict are left out."""
    table = MatrixTable(run)
    for row in run.cells:
        cell = mark_unfinished(row.cell) if live else row.cell
        if live and cell.outcome == "unproven" and not count_trials(cell):
            continue
        table.add(cell)
    return table.build_document()


class MatrixTable:
    """Cells as columns of numbers. Most cells of a large matrix passed and differ only in their place."""

    def __init__(self, run: Run) -> None:
        self.numbers = Numbering(run)
        self._strings = {"": 0}
        """The number of each text."""
        self._columns: dict[str, list[int]] = {
            name: [] for name in ("rule", "column", "outcome", "flags", "tally", "reason")
        }

    def add(self, cell: Cell) -> None:
        texts = (", ".join(wording.list_marks(cell)), wording.format_tally(cell), cell.reason)
        known = self._strings
        indexes = (known.setdefault(text, len(known)) for text in texts)
        numbers = (*self.get_indexes(cell), _CODE[cell.outcome], *indexes)
        for column, number in zip(self._columns.values(), numbers, strict=True):
            column.append(number)

    def get_indexes(self, cell: Cell) -> tuple[int, int]:
        """Return its rule and its column, as indexes into the lists of the run's document."""
        return self.numbers.rules[cell.invariant], self.numbers.columns[wording.format_column(cell)]

    def build_document(self) -> dict[str, Any]:
        count = len(self._columns["rule"])
        return {
            "cells": count,
            "outcomes": OUTCOMES,
            **self._columns,
            "strings": list(map(make_encodable, self._strings)),
        }


def count_trials(cell: Cell) -> int:
    """Return how many trials a cell has, without reading them."""
    return cell.passes + cell.fails + cell.errors + cell.unproven


def build_cell(run: Run, row: CellRow) -> dict[str, Any]:
    """Return one cell with its trials."""
    cell = row.cell
    visible = list(islice(row.trials, TRIALS))
    return {
        "cell": {
            "rule": cell.invariant,
            "column": wording.format_column(cell),
            "params": wording.format_params(cell.params),
            "severity": "critical" if cell.critical else cell.severity,
            "reason": mark_unfinished(cell).reason if wording.is_to_come(run, cell) else wording.format_reason(row),
            "flags": ", ".join(wording.list_marks(cell)),
            "tally": wording.format_tally(cell),
            **pick(cell, "outcome weight"),
            "low": cell.rate.low if cell.rate else None,
            "high": cell.rate.high if cell.rate else None,
            "next": wording.format_next_step(run, row) if cell.outcome in ("error", "unproven") else "",
            "where": wording.Places(run).format_place(cell.invariant),
        },
        "trials": [_build_trial(trial) for trial in visible],
        "left_out": max(0, len(row.trials) - TRIALS),
    }


def find_cell(run: Run, rule: str, column: str) -> CellRow | None:
    """Return the cell of that rule in that column."""
    return next(
        (row for row in run.cells if row.cell.invariant == rule and wording.format_column(row.cell) == column), None
    )


def _build_trial(trial: TrialRow) -> dict[str, Any]:
    return {
        **pick(trial, "id ending outcome reason score replica aside again"),
        "prompt": cut(trial.prompt, TEXT),
        "answer": None if trial.answer is None else cut(trial.answer, TEXT),
        "detail": cut(trial.detail, TEXT),
        "latency_ms": round(trial.latency_ms, 1),
        "faults": [wording.format_fault(met) for met in trial.faults[:20]],
    }


def mark_unfinished(cell: Cell) -> Cell:
    """Return a cell of a running run: missing trials are still to come."""
    return replace(cell, reason="some of its trials have not run yet") if cell.code == "not-run" else cell
