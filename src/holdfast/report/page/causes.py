"""Failures of a run by rule and cause, each with its most telling trial."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.model.observation import FaultMet
from holdfast.model.run import PartResult, ReplicaRow, Run, TrialRow
from holdfast.report import cases, standards, wording
from holdfast.report.causes import cause_words
from holdfast.report.causes.case_causes import CaseCause, group_cases
from holdfast.report.causes.cell_causes import Cause, Causes
from holdfast.report.page.run import Numbering, build_columns
from holdfast.report.page.values import cut, to_utf16_span
from holdfast.report.terminal.matrix import Grid, build_grid

SHOWN, CASES, TEXT = 500, 200, 4_000
"""Causes, named cases per cause, and characters of questions and answers."""
ROWS, COLUMNS = 60, 20
"""Rules and scenarios in the matrix of a part; the part's own page has all."""
CELLS = 20_000
"""Cells that all causes name together."""


def build_causes(run: Run, grouping: Causes | None = None) -> dict[str, Any]:
    """Failures grouped by rule and cause, worst first: cases, then cells. `grouping` has every cell of the run."""
    if grouping is None:
        grouping = Causes(run)
        for row in run.cells:
            grouping.add(row)
    every_cause, of_cases = grouping.sort_causes(), group_cases(run) if run.by_cases else []
    causes = [_build_case_cause(run, cause) for cause in of_cases[:SHOWN]]
    numbers, room = Numbering(run), CELLS
    for cause in every_cause[: SHOWN - len(causes)]:
        cells = _list_cells(cause, numbers, max(1, room))
        room -= len(cells)
        causes.append({**_build_cause(run, cause), "cells": cells})
    return {
        "causes": causes,
        "total": len(every_cause) + len(of_cases),
        "cells": grouping.total,
    }


def build_failed_part(part: PartResult, run: Run) -> dict[str, Any]:
    """Return the causes and the matrix of a failed part, for the page of the whole run."""
    matrix = build_grid(run) if wording.has_matrix(run) else Grid({}, ())
    names, heads = list(matrix.rules)[:ROWS], list(matrix.heads)[:COLUMNS]
    faces = [[matrix.get_face(rule, head) for head in heads] for rule in names]
    return {
        "part": part.part,
        "run": part.run,
        "page": part.page,
        **build_causes(run),
        "rules": [{"id": rule.id} for rule in run.invariants],
        "columns": [{"name": column["name"]} for column in build_columns(run)],
        "matrix": {
            "heads": heads,
            "rows": [
                {"rule": rule, "severity": matrix.rules[rule], "cells": [(face.outcome, face.text) for face in row]}
                for rule, row in zip(names, faces, strict=True)
            ],
            "left_out": len(matrix.rules) - len(names) + len(matrix.heads) - len(heads),
        },
    }


def _build_case_cause(run: Run, cause: CaseCause) -> dict[str, Any]:
    """Build the entry of cases that did not pass because of the same rules."""
    one = cases.find_telling(cause.first)
    known = {rule.id: rule for rule in run.invariants}
    first = known.get(cause.rules[0]) if cause.rules else None
    return {
        "rule": ", ".join(cause.rules),
        "description": first.description if first else "",
        "severity": ("critical" if first.gate else first.severity) if first else "",
        "outcome": cause.outcome,
        "reason": (_format_reason(one) if run.part == "scenario" else "") or cause.reason,
        "remarks": "",
        "also": cause_words.format_others(cause.reasons[0], cause.reasons),
        "fault": _format_met(one.seen.ledger) if one else "",
        "faults": cause_words.format_faults(cause),
        "cells": [],
        "noun": cases.get_noun(run),
        "cases": [cases.format_head(row.case) for row in cause.members[:CASES]],
        "count": len(cause.members),
        "trials": cause.trials,
        "where": wording.Places(run).format_place(cause.rules[0]) if cause.rules else run.spec_path,
        "next": "",
        "standards": list(map(str, standards.list_for_case_cause(cause))),
        **_build_trial_facts(cases.build_trial_row(one) if one else None),
    }


def _format_reason(one: ReplicaRow | None) -> str:
    """Return the reason of the trial: the case itself only names its rules."""
    if one is None:
        return ""
    reasons = [f"{verdict.invariant}: {verdict.reason}" for verdict in cases.list_unpassed(one)]
    return "; ".join([*reasons, *cases.list_violations(one)])


def _build_cause(run: Run, cause: Cause) -> dict[str, Any]:
    trial = wording.find_telling(cause.first)
    return {
        "rule": ", ".join(cause_words.mark_rules(cause)),
        "description": cause.description,
        "severity": cause.severity,
        "outcome": cause.outcome,
        "reason": cause.reason,
        "remarks": cause_words.format_marks(cause),
        "also": cause_words.format_also(cause),
        "fault": _format_met(trial.faults) if trial else "",
        "faults": cause_words.format_faults(cause),
        "noun": "cell",
        "cases": [],
        "count": cause.cells,
        "trials": cause.trials,
        "where": cause.place,
        "next": wording.format_next_step(run, cause.first) if cause.outcome != "fail" else "",
        "standards": list(map(str, standards.list_for_cause(run, cause))),
        **_build_trial_facts(trial),
    }


def _list_cells(cause: Cause, numbers: Numbering, most: int) -> list[tuple[int, int]]:
    """Return the cells of a cause, by rule and column."""
    members = zip(cause.member_rules[:most], cause.members[:most], strict=True)
    return [(numbers.rules[rule], numbers.columns[one.head]) for rule, one in members]


def _build_trial_facts(trial: TrialRow | None) -> dict[str, Any]:
    if trial is None:
        return {"trial": "", "asked": "", "answered": None, "marks": [], "again": ""}
    answer = trial.answer or ""
    return {
        "trial": trial.id,
        "asked": cut(trial.prompt, TEXT),
        "answered": cut(wording.format_answer(trial), TEXT),
        "marks": [to_utf16_span(answer, *span) for span in trial.marks if span[1] <= min(TEXT, len(answer))],
        "again": trial.again,
    }


def _format_met(ledger: Iterable[FaultMet]) -> str:
    """Return the faults that the agent met in the shown trial."""
    return "; ".join(wording.format_fault(one) for one in wording.filter_met(ledger)[:5])
