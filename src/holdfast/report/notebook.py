"""A run as a notebook shows it: the verdict, its reasons, the cases and the matrix. No style, no script."""

from __future__ import annotations

from holdfast.model.run import Run
from holdfast.model.score import Case
from holdfast.report import cases, wording
from holdfast.report.html import template
from holdfast.report.matrix import grid

MAX_ROWS = 100
"""Rules, and cases, that a cell of a notebook shows."""


def fragment(run: Run) -> str:
    """HTML with every text of the run escaped."""
    matrix = grid(run)
    rules = list(matrix.rules)
    found = [_case(row.case) for row in run.cases]
    html: str = template("notebook.html.j2").render(
        run=run,
        score=run.score,
        words=wording,
        reasons=run.score.reasons,
        cases=found[:MAX_ROWS],
        grid=matrix,
        rules=rules[:MAX_ROWS],
        more=max(0, len(rules) - MAX_ROWS) + max(0, len(found) - MAX_ROWS),
    )
    return html


def _case(case: Case) -> dict[str, str]:
    word = "unproven" if case.unproven_only else case.status
    return {
        "head": cases.head(case),
        "sign": wording.SIGNS[word],
        "word": word,
        "composite": cases.composite(case.composite),
        "reason": case.reason,
    }
