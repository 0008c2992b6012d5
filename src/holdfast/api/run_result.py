"""The result of a run for Python code: verdict and score, cells, cases and trials."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import UsageError
from holdfast.model.codes import RunWarning
from holdfast.model.run import CaseRow, CellRow, Run, TracedTrial
from holdfast.model.score import Score
from holdfast.runner.outcome import RunOutcome

MEANINGS: Mapping[int, str] = {
    0: "held",
    1: "violated, or below the minimum",
    2: "interrupted",
    3: "harness error",
    4: "usage or configuration",
    5: "nothing proven",
}


class RunResult:
    """A finished, stored run. Trials are read from its folder when needed."""

    def __init__(self, outcome: RunOutcome) -> None:
        self._outcome = outcome

    @property
    def run(self) -> Run:
        """Everything that reports are made of."""
        return self._outcome.run

    @property
    def id(self) -> str:
        return self.run.id

    @property
    def path(self) -> Path:
        """The run's folder."""
        return Path(self.run.path)

    @property
    def score(self) -> Score:
        """The numbers, the deciding reasons as `reasons`; `score.value` is None if no cell counted."""
        return self._outcome.score

    @property
    def passed(self) -> bool:
        """Whether it passed: `holdfast` would exit with 0."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """What `holdfast` would exit with."""
        return self.score.exit_code

    @property
    def meaning(self) -> str:
        """The exit code in words."""
        return MEANINGS[self.exit_code]

    @property
    def cells(self) -> Sequence[CellRow]:
        """Every rule in every scenario: `row.cell` has its outcome and reason, `row.trials` what decided it."""
        return self.run.cells

    @property
    def cases(self) -> Sequence[CaseRow]:
        """A task in every scenario: `row.case` has its status, `row.replicas` its trials."""
        return self.run.cases

    @property
    def trials(self) -> Iterator[TracedTrial]:
        """Every trial with its observation and every verdict on it, in the order in which they were begun."""
        return self._outcome.cells.read_traced()

    @property
    def warnings(self) -> tuple[RunWarning, ...]:
        return self.run.warnings

    def cell(self, invariant: str, scenario: str, **params: Any) -> CellRow:
        """Return one cell; raise UsageError if the run has no such cell."""
        for row in self.cells:
            if (row.cell.invariant, row.cell.scenario, row.cell.params) == (invariant, scenario, params):
                return row
        there = ", ".join(f"{row.cell.invariant} in {row.cell.scenario}" for row in self.cells[:10])
        raise UsageError(
            f"run {self.id} has no cell {invariant} in {scenario}", hint=f"available: {there}", code="cell-unknown"
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a report; the suffix selects the format: .html .json .md .xml .sarif"""
        from holdfast.report.formats.files import write

        write(self.run, Path(path))

    def close(self) -> None:
        """Close the run's files; they are opened again when a trial is read."""
        self._outcome.close()

    def __enter__(self) -> RunResult:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        value = "no score" if self.score.value is None else f"{self.score.value:.2f}"
        return f"<holdfast run {self.id}: {self.meaning}, {value}>"

    def __str__(self) -> str:
        """The summary as a terminal shows it."""
        from holdfast.report.terminal.summary import format_summary

        return format_summary(self.run, width=100, color=False)

    def _repr_html_(self) -> str:
        """Return the output in a notebook."""
        from holdfast.report.page.html import render_text

        return render_text(str(self))
