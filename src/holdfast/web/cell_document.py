"""One cell with its trials."""

from __future__ import annotations

from itertools import islice
from typing import Any

from holdfast.model.run import CellRow, Run, TrialRow
from holdfast.report import wording
from holdfast.report.page_data import cut
from holdfast.web.live_run import so_far
from holdfast.web.opened_runs import NotThere

TRIALS = 500
TEXT = 4_000
"""Characters of a prompt or an answer: the page of the trial has all of it."""


def cell_document(run: Run, rule: str, column: str) -> dict[str, Any]:
    """The cell of that rule under that heading; NotThere if there is none."""
    row = _find(run, rule, column)
    cell = row.cell
    shown = list(islice(row.trials, TRIALS))
    return {
        "cell": {
            "rule": cell.invariant,
            "column": wording.column(cell),
            "scenario": cell.scenario,
            "params": wording.params(cell.params),
            "outcome": cell.outcome,
            "severity": "critical" if cell.critical else cell.severity,
            "weight": cell.weight,
            "reason": so_far(cell).reason if wording.to_come(run, cell) else wording.why(row),
            "flags": ", ".join(wording.marks(cell)),
            "tally": wording.tally(cell),
            "passes": cell.passes,
            "fails": cell.fails,
            "errors": cell.errors,
            "unproven": cell.unproven,
            "met": cell.met,
            "low": cell.rate.low if cell.rate else None,
            "high": cell.rate.high if cell.rate else None,
            "next": wording.next_step(run, row) if cell.outcome in ("error", "unproven") else "",
            "where": wording.Places(run).of(cell.invariant),
        },
        "trials": [_trial(trial) for trial in shown],
        "left_out": max(0, len(row.trials) - TRIALS),
    }


def _find(run: Run, rule: str, column: str) -> CellRow:
    for row in run.cells:
        if row.cell.invariant == rule and wording.column(row.cell) == column:
            return row
    raise NotThere(f"run {run.id} has no rule {rule!r} in {column!r}", hint="open it from the matrix of the run")


def _trial(trial: TrialRow) -> dict[str, Any]:
    return {
        "id": trial.id,
        "prompt": cut(trial.prompt, TEXT),
        "answer": None if trial.answer is None else cut(trial.answer, TEXT),
        "ending": trial.ending,
        "detail": cut(trial.detail, TEXT),
        "latency_ms": round(trial.latency_ms, 1),
        "outcome": trial.outcome,
        "reason": trial.reason,
        "score": trial.score,
        "replica": trial.replica,
        "faults": [wording.fault(met) for met in trial.faults[:20]],
        "aside": trial.aside,
        "again": trial.again,
    }
