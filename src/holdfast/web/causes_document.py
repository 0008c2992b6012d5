"""What did not hold in a run, by rule and cause, each with the trial that tells best."""

from __future__ import annotations

from typing import Any

from holdfast.model.run import Run, TrialRow
from holdfast.report import wording
from holdfast.report.causes import Cause, Causes
from holdfast.report.page_data import cut, utf16_span

SHOWN, CELLS, TEXT = 500, 200, 4_000
"""Causes, cells that one names, and characters of what was asked and answered."""


def causes_document(run: Run) -> dict[str, Any]:
    """Failures grouped by rule and cause, the worst first."""
    grouping = Causes(run)
    for row in run.cells:
        grouping.add(row)
    found = grouping.sorted()
    return {
        "causes": [_cause(run, cause) for cause in found[:SHOWN]],
        "total": len(found),
        "cells": grouping.total,
    }


def _cause(run: Run, cause: Cause) -> dict[str, Any]:
    trial = wording.telling(cause.first)
    return {
        "rule": cause.rule,
        "description": cause.description,
        "severity": cause.severity,
        "outcome": cause.outcome,
        "reason": cause.reason,
        "marks_of_cells": cause.marks,
        "mixed": cause.mixed,
        "fault": _faults(cause, trial),
        "cells": [[cause.rule, member.head] for member in cause.members[:CELLS]],
        "count": cause.cells,
        "trials": cause.trials,
        "where": cause.place,
        "next": wording.next_step(run, cause.first) if cause.outcome != "fail" else "",
        **_told(trial),
    }


def _told(trial: TrialRow | None) -> dict[str, Any]:
    if trial is None:
        return {"trial": "", "asked": "", "answered": None, "marks": [], "again": ""}
    answer = trial.answer or ""
    return {
        "trial": trial.id,
        "asked": cut(trial.prompt, TEXT),
        "answered": cut(wording.said(trial), TEXT),
        "marks": [utf16_span(answer, *span) for span in trial.marks if span[1] <= min(TEXT, len(answer))],
        "again": trial.again,
    }


def _faults(cause: Cause, trial: TrialRow | None) -> str:
    """What the agent met in the trial that is shown; else under which faults the cells were."""
    met = wording.met(trial.faults) if trial else []
    if met:
        return "; ".join(wording.fault(one) for one in met[:5])
    shown = [" and ".join(name.shown for name in names) for names, _ in cause.faults if names]
    return ", ".join(shown[:5])
