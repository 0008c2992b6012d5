"""A run as a notebook shows it: the verdict, its reasons, the cases and the matrix. No style, no script."""

from __future__ import annotations

from holdfast.model.run import Run
from holdfast.model.score import Case
from holdfast.report import cases, wording
from holdfast.report.matrix import grid
from holdfast.report.safe import one_line
from holdfast.report.template import template

MAX_ROWS = 100
"""Rules, and cases, that a cell of a notebook shows."""


def fragment(run: Run) -> str:
    """HTML with every text of the run escaped."""
    drawn = grid(run)
    rules = list(drawn.rules.items())[:MAX_ROWS]
    found = [_case(row.case) for row in run.cases]
    pieces = template("notebook.html").pieces(
        run=run,
        score=run.score,
        words=wording,
        shown=one_line,
        reasons=run.score.reasons,
        cases=found[:MAX_ROWS],
        heads=drawn.heads,
        matrix=[(rule, severity, [drawn.face(rule, head) for head in drawn.heads]) for rule, severity in rules],
        more=max(0, len(drawn.rules) - MAX_ROWS) + max(0, len(found) - MAX_ROWS),
    )
    return "".join(pieces)


def _case(case: Case) -> dict[str, str]:
    word = "unproven" if case.unproven_only else case.status
    return {
        "head": cases.head(case),
        "sign": wording.SIGNS[word],
        "word": word,
        "composite": cases.composite(case.composite),
        "reason": case.reason,
    }
