"""Causes as JSON: which cells and cases failed for which reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.model.run import Run
from holdfast.report import cases, wording
from holdfast.report.causes.case_causes import CaseCause, group_cases
from holdfast.report.causes.cell_causes import Cause, group_cells


def build_entries(run: Run) -> Iterator[dict[str, Any]]:
    """Yield the causes of all cells, worst first, then those of the cases."""
    every_cause = group_cells(run)[::-1] if wording.has_cells(run) else []
    while every_cause:  # each is released once it is written, with the trials read for it
        yield _build_cell_cause(run.part if run.part in ("chaos", "hunt") else "contract", every_cause.pop())
    if run.by_cases:
        yield from (_build_case_cause(run, cause) for cause in group_cases(run))


def _build_cell_cause(part: str, cause: Cause) -> dict[str, Any]:
    trial = wording.find_telling(cause.first)
    return {
        "part": part,
        "rules": cause.rules,
        "description": cause.description,
        "severity": cause.severity,
        "place": cause.place,
        "outcome": cause.outcome,
        "reason": cause.reason,
        "code": cause.code,
        "key": cause.first.cell.key,
        "one_reason": not cause.mixed,
        "trials": cause.trials,
        "faults": _build_faults(cause),
        "cells": [
            {"invariant": rule, "scenario": member.scenario, "params": member.params}
            for rule, member in zip(cause.member_rules, cause.members, strict=True)
        ],
        "first": {"trial": trial.id, "again": trial.again} if trial is not None else None,
    }


def _build_faults(cause: Cause | CaseCause) -> list[dict[str, Any]]:
    """Return the sets of faults under which it occurred, with the number of cells or cases for each."""
    noun = "cells" if isinstance(cause, Cause) else "cases"
    return [{"faults": [name._asdict() for name in names], noun: count} for names, count in cause.faults]


def _build_case_cause(run: Run, cause: CaseCause) -> dict[str, Any]:
    one = cases.find_telling(cause.first)
    known = {rule.id: rule.description for rule in run.invariants}
    return {
        "part": run.part,
        "rules": cause.rules,
        "description": known.get(cause.rules[0], "") if len(cause.rules) == 1 else "",
        "outcome": cause.outcome,
        "reason": cause.reason,
        "codes": list(dict.fromkeys(one.code for one in cause.first.case.causes)),
        "trials": cause.trials,
        "faults": _build_faults(cause),
        "cases": [
            {
                "case": cases.format_head(row.case),
                "scenario": row.case.scenario,
                "params": row.case.params,
                "trials": [one.trial for one in row.case.replicas],
            }
            for row in cause.members
        ],
        "first": {"trial": one.replica.trial, "again": one.again} if one is not None else None,
    }
