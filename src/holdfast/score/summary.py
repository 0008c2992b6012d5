"""All cells in a few counters: what the score and the verdict need to know of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import NamedTuple

from holdfast.model.score import Cell
from holdfast.score.cell import Decision, Tries


class Sums(NamedTuple):
    """Weights by outcome."""

    passed: float
    failed: float
    error: float

    @property
    def score(self) -> float | None:
        """Resilience, 0 to 100, not rounded; None if nothing counted."""
        counted = self.passed + self.failed
        return 100.0 * self.passed / counted if counted else None

    @property
    def best(self) -> float | None:
        """The score if every error cell had passed."""
        return Sums(self.passed + self.error, self.failed, 0.0).score


class Summary:
    """Cells counted; only the failed ones are kept."""

    def __init__(self, decided: Iterable[tuple[Cell, Decision]]) -> None:
        self.failed: list[tuple[Cell, Decision]] = []
        self.tries: Counter[Tries] = Counter()
        """Of counted cells with several replicas."""
        self.rules: set[str] = set()
        """Rules of which a cell counted."""
        self.flaky = 0
        self._kinds: Counter[tuple[str, bool, float]] = Counter()
        for cell, decision in decided:
            self._add(cell, decision)

    def _add(self, cell: Cell, decision: Decision) -> None:
        self._kinds[cell.outcome, cell.chaos, cell.weight] += 1
        self.flaky += cell.flaky
        if cell.outcome == "fail":
            self.failed.append((cell, decision))
        if cell.counted:
            self.rules.add(cell.invariant)
            if decision.tries:
                self.tries[decision.tries] += 1

    def count(self, *outcomes: str) -> int:
        """How many cells have one of these outcomes."""
        return sum(n for (outcome, _, _), n in self._kinds.items() if outcome in outcomes)

    def sums(self, *, chaos: bool | None = None) -> Sums:
        """Of all cells, or of those under chaos, or in calm."""
        by = {"pass": 0.0, "fail": 0.0, "error": 0.0}
        for (outcome, stormy, weight), n in sorted(self._kinds.items()):
            if outcome in by and chaos in (None, stormy):
                by[outcome] += weight * n
        return Sums(*by.values())

    def weights(self) -> Iterator[float]:
        """The weight of every counted cell."""
        for (outcome, _, weight), n in self._kinds.items():
            if outcome in ("pass", "fail"):
                yield from repeat(weight, n)
