"""Two runs side by side: rule by rule as in `holdfast compare`, and cell by cell."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from holdfast.errors import UserError
from holdfast.report import cases, wording
from holdfast.report.page.values import pick
from holdfast.report.terminal.comparison import format_outlook
from holdfast.runner.past.comparison import compare_runs
from holdfast.score.comparison import Comparison, RuleComparison
from holdfast.store.past_run import CASES
from holdfast.store.rundir import RunDir
from holdfast.web.opened_runs import OpenedRun, OpenedRuns

CELLS = 5_000
"""Cells that differ and are sent to the page."""

_Place = tuple[str, str, str]
"""Part, rule and column of a cell."""


def compare_document(opened: OpenedRuns, a: str, b: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return what changed from `a` to `b`; if nothing can be paired, a note says so, and the cells are still shown."""
    before, after = opened.find_folder(a), opened.find_folder(b)
    problem, comparison = "", None
    try:
        comparison = compare_runs(before, after, environ=environ)
    except UserError as refused:
        problem = f"{refused}: {refused.hint}" if refused.hint else str(refused)
    then, now = _read_outcomes(opened, before, after), _read_outcomes(opened, after, before)
    return {**_build_rules(comparison, problem), **_build_cells(then, now)}


def _build_rules(comparison: Comparison | None, problem: str) -> dict[str, Any]:
    if comparison is None:
        return {"note": problem, "notes": [], "rules": []}
    return {
        "note": "",
        **pick(comparison, "notes"),
        "rules": [_build_rule(one) for one in comparison.rules],
    }


def _build_rule(one: RuleComparison) -> dict[str, Any]:
    return {
        **pick(one, "rule part pairs passed_before passed_after p"),
        "verdict": one.change,
        "outlook": format_outlook(one),
        "holm": one.p_holm,
    }


def _build_cells(then: Mapping[_Place, str], now: Mapping[_Place, str]) -> dict[str, Any]:
    places = list(dict.fromkeys((*now, *then)))
    differ = [place for place in places if then.get(place) != now.get(place)]
    return {
        "cells": [
            {"part": part, "rule": rule, "column": column, "a": then.get(place), "b": now.get(place)}
            for place in differ[:CELLS]
            for part, rule, column in (place,)
        ],
        "same": len(places) - len(differ),
        "differ": sum(place in then and place in now for place in differ),
        "new": sum(place not in then for place in differ),
        "gone": sum(place not in now for place in differ),
    }


def _read_outcomes(opened: OpenedRuns, run: RunDir, other: RunDir) -> dict[_Place, str]:
    """Return the outcome of every cell. A cell has a part only if both runs have several."""
    both = bool(run.parts and other.parts)
    outcomes: dict[_Place, str] = {}
    for one in _select_parts(run, other):
        outcomes |= opened.use(one.id, partial(_list_outcomes, part=one.path.name if both else ""))
    return outcomes


def _select_parts(run: RunDir, other: RunDir) -> tuple[RunDir, ...]:
    """Return the parts of a multi-part run; next to a run of one part, the matching part."""
    if not run.parts:
        return (run,)
    # A run of one part is compared with that part of the other run, and with no other.
    wanted = None if other.parts else other.read_manifest().options.part
    return tuple(part for part in run.parts if wanted in (None, part.path.name))


def _list_outcomes(opened: OpenedRun, *, part: str) -> dict[_Place, str]:
    run = opened.outcome.run
    outcomes: dict[_Place, str] = {
        (part, row.cell.invariant, wording.format_column(row.cell)): row.cell.outcome for row in run.cells
    }
    outcomes |= {(part, CASES, cases.format_head(row.case)): cases.get_outcome(row.case) for row in run.cases}
    return outcomes
