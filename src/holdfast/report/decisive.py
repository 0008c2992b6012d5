"""Decides which cells determine a run's verdict, so a test report fails exactly where the run does."""

from __future__ import annotations

from collections.abc import Collection

from holdfast.model.run import Run
from holdfast.model.score import Cell
from holdfast.report import wording
from holdfast.score.resilience import format_cell_name


class Decisive:
    """The deciding cells of one run. `failed` are the heads of failed cases."""

    def __init__(self, run: Run, failed: Collection[str] = ()) -> None:
        contract = run.contract or run.score
        self.held = run.score.exit_code == 0
        """If the run held, nothing has failed, whatever its cells are."""
        self._tolerated = frozenset(contract.tolerated)
        self._has_cases = run.by_cases and len(run.cases) > 0
        self._matrix = wording.has_cells(run)
        self._minimum = contract.min_score is not None
        self._failed = failed

    def is_decisive(self, cell: Cell) -> bool:
        """Return whether a failed cell, or one with an error, also counts for the verdict."""
        if self.held:
            return False
        if cell.outcome != "fail":
            return True
        # A failed case is shown as failed together with the cells of its column: they explain it.
        if wording.format_column(cell) in self._failed:
            return True
        if not self._matrix:
            return False
        if cell.critical:
            return True
        if self._has_cases and not self._minimum:
            return False
        return format_cell_name(cell) not in self._tolerated
