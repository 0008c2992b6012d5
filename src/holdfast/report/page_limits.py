"""How much of a very large run the page holds: all that did not hold, and a sample of what did."""

from __future__ import annotations

from holdfast.model.run import CellRow, Run
from holdfast.report.wording import plural

CELLS = 100_000
"""Up to here the matrix has every cell; of more, those that did not hold and a sample."""
HELD = 20_000
"""Cells that held and whose trials are in the page."""
TRIALS = 50_000
"""Trials of cells that held, and as many of cells that did not."""
_GOLDEN, _RANGE = 2_654_435_761, 1 << 32


class PageLimits:
    """Decides cell by cell, in the order of the run, what the page holds. Equal runs give equal pages."""

    def __init__(self, run: Run) -> None:
        self._total = len(run.cells)
        self._step = max(1, -(-self._total // HELD))
        self._room = {True: TRIALS, False: TRIALS}
        self._at = self._cells = self._passed = self._told = 0
        self._left_cells = self._left_trials = 0
        """What did not hold and found no room."""

    def takes(self, row: CellRow) -> bool:
        """Whether the matrix has the cell."""
        self._at += 1
        self._passed += row.cell.outcome == "pass"
        held = row.cell.outcome in ("pass", "n/a")
        kept = self._total <= CELLS or (self._sampled if held else self._cells < CELLS)
        self._cells += kept
        self._left_cells += not kept and not held
        return kept

    def trials(self, row: CellRow) -> int:
        """How many trials of the cell that it was just asked about are in the page."""
        held = row.cell.outcome in ("pass", "n/a")
        if held and not self._sampled:
            return 0
        room = self._room[held]
        wanted = len(row.trials) if room else counted(row)
        self._room[held] -= min(wanted, room)
        self._told += row.cell.outcome == "pass" and room > 0
        self._left_trials += max(0, wanted - room)
        return min(wanted, room)

    @property
    def _sampled(self) -> bool:
        # Every n-th would meet the same rules again and again; multiples of the golden ratio are spread evenly.
        return self._step == 1 or self._at * _GOLDEN % _RANGE < _RANGE // self._step

    def said(self, run: Run) -> str:
        """What the page lacks, in words; nothing if it has all."""
        if self._step == 1 and not self._left_trials:
            return ""
        shown = f"{self._cells} of {plural(self._total, 'cell')} are in the matrix. " if self._total > CELLS else ""
        left = [plural(self._left_cells, "cell")] if self._left_cells else []
        left += [plural(self._left_trials, "trial")] if self._left_trials else []
        lacks = f" There was no room for {' and '.join(left)} more." if left else ""
        return (
            f"{shown}This page has the trials of the cells that did not hold, and of {self._told} of the "
            f"{plural(self._passed, 'cell')} that did.{lacks} All of them: holdfast report {run.id} -o run.json"
        )


def counted(row: CellRow) -> int:
    """How many trials a cell has, without reading them."""
    cell = row.cell
    return cell.passes + cell.fails + cell.errors + cell.unproven
