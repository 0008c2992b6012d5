"""All cells in a few counters: what the score and the verdict need to know of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from holdfast.model.score import Cell
from holdfast.score.cell import Tries
from holdfast.score.tally import Tally

if TYPE_CHECKING:
    from holdfast.score.beside_calm import BesideCalm


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

    def __init__(self, tally: Tally) -> None:
        self.failed: list[Cell] = []
        self.tries: Counter[Tries] = Counter()
        """Of counted cells with several replicas."""
        self.flaky = 0
        self.group_weights: Collection[float] = ()
        """The weights of counted cells, added up over those that share trials."""
        self.failed_groups = 0
        """Such groups of which a cell failed."""
        self.outside_errors = 0
        self._outside: dict[str, float] = {}
        """Weights by outcome of cells that are no part of the score."""
        self._kinds: dict[tuple[str, bool, float], int] = {}
        rules, open_ = set(), {}
        kinds = self._kinds
        own, width = frozenset(tally.spec.cell_rules), len(tally.spec.params)
        height = width * len(tally.plan.invariants)
        groups: dict[int, float] = {}
        lost: set[int] = set()
        outside = tally.spec.beside
        beside = self.beside = _beside_calm(tally)
        for position, column, chaos, decision in tally.decided():
            outcome = decision.outcome
            if beside is not None and outcome != "n/a":
                if outcome == "pass":
                    beside.counted[column.rule.id, chaos] = beside.counted.get((column.rule.id, chaos), 0) + 1
                else:
                    beside.add(column.rule, chaos, decision)
            if outside and tally.plan.key_at(position).scenario in outside:
                # The calm column of a chaos run is not part of its score, but what fails there fails the run.
                self._outside[outcome] = self._outside.get(outcome, 0.0) + column.weight
                self.outside_errors += outcome == "error"
                if outcome == "fail":
                    self.failed.append(tally.cell(position, decision))
                elif outcome in ("error", "unproven") and column.critical:
                    open_[column] = column.rule.id
                continue
            kind = outcome, chaos, column.weight
            kinds[kind] = kinds[kind] + 1 if kind in kinds else 1
            self.flaky += decision.flaky
            if outcome in ("pass", "fail"):
                rules.add(column)
                alone = column.rule.id in own or column.rule.probes
                group = position if alone else -1 - position // height * width - position % width
                groups[group] = groups.get(group, 0.0) + column.weight
                if outcome == "fail":
                    self.failed.append(tally.cell(position, decision))
                    lost.add(group)
                if decision.tries:
                    self.tries[decision.tries] += 1
            elif outcome != "n/a" and column.critical:
                open_[column] = column.rule.id
        self.group_weights = groups.values()
        self.failed_groups = len(lost)
        self.rules = {column.rule.id for column in rules}
        """Rules of which a cell counted."""
        self.uncounted = tuple(name for column, name in open_.items() if column not in rules)
        """Critical rules that applied somewhere, and of which no cell counted."""

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

    @property
    def outside(self) -> Sums:
        """Of the cells that are only compared with."""
        return Sums(*(self._outside.get(outcome, 0.0) for outcome in ("pass", "fail", "error")))

    def weights(self) -> list[tuple[float, int]]:
        """The weights of counted cells, each with how many have it."""
        return [(weight, n) for (outcome, _, weight), n in self._kinds.items() if outcome in ("pass", "fail")]


def _beside_calm(tally: Tally) -> BesideCalm | None:
    """Where chaos is to be put beside calm: only where a whole plan has both."""
    if not tally.plan.whole or len({scenario.calm for scenario in tally.plan.scenarios}) < 2:
        return None
    from holdfast.score.beside_calm import BesideCalm

    return BesideCalm(tally)
