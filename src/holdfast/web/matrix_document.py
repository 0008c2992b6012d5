"""Every cell of a run: columns of numbers over one table of strings, small once packed."""

from __future__ import annotations

from typing import Any

from holdfast.model.run import Run
from holdfast.model.score import Cell
from holdfast.model.verdict import OUTCOMES
from holdfast.report import wording
from holdfast.report.page_data import Interned
from holdfast.web.live_run import so_far

_CODE = {outcome: number for number, outcome in enumerate(OUTCOMES)}


def matrix_document(run: Run, *, live: bool = False) -> dict[str, Any]:
    """The matrix. `rule` and `column` count in the lists of the run's document.

    `live`: the run is under way, and cells without a verdict are left out.
    """
    strings = Interned()
    strings.of("")
    rules = {rule.id: number for number, rule in enumerate(run.invariants)}
    heads = [wording.head(scenario.name, params) for scenario in run.scenarios for params in run.params]
    columns = {head: number for number, head in reversed(list(enumerate(heads)))}
    known: dict[tuple[Any, ...], tuple[int, int, int, int]] = {}
    places: list[int] = []
    tops: list[int] = []
    facts: list[tuple[int, int, int, int]] = []
    for row in run.cells:
        cell = so_far(row.cell) if live else row.cell
        if live and cell.outcome == "unproven" and not cell.passes + cell.fails + cell.errors + cell.unproven:
            continue
        places.append(rules[cell.invariant])
        tops.append(columns[wording.column(cell)])
        key = (cell.outcome, cell.reason, cell.passes, cell.fails, *_marks(cell))
        found = known.get(key)
        if found is None:
            found = known[key] = _facts(cell, strings)
        facts.append(found)
    outcome, flags, tally, reason = ([fact[n] for fact in facts] for n in range(4))
    return {
        "cells": len(places),
        "outcomes": OUTCOMES,
        "rule": places,
        "column": tops,
        "outcome": outcome,
        "flags": flags,
        "tally": tally,
        "reason": reason,
        "strings": strings.values,
    }


def _marks(cell: Cell) -> tuple[bool, ...]:
    return cell.flaky, cell.fails_in_calm, cell.simulated, cell.concurrent


def _facts(cell: Cell, strings: Interned) -> tuple[int, int, int, int]:
    return (
        _CODE[cell.outcome],
        strings.of(", ".join(wording.marks(cell))),
        strings.of(wording.tally(cell)),
        strings.of(cell.reason),
    )
