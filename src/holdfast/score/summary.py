"""All cells in a few counters: what the score and the verdict need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from math import ceil, floor, fsum, sqrt
from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from holdfast.model.score import Cell, Interval, PairedDifference
from holdfast.model.spec import Invariant
from holdfast.score.cell import Decision, Tries
from holdfast.score.tally import Tally

MOST = 200_000
"""Failures of rules on prompts; with more of them the difference is not computed."""


class CalmComparison:
    """Counts cells in calm and under chaos, by rule. Single prompts are stored only if they failed.

    A prompt's replicas count as in the cell: it passed or it did not.
    """

    def __init__(self, tally: Tally) -> None:
        self._plan = tally.plan
        self.counted: Counter[tuple[str, bool]] = Counter()
        """By rule and weather: the cells that count."""
        self._lost: Counter[tuple[str, bool, int]] = Counter()
        """By the same and the index of a prompt: the number of cells in which it failed."""
        self._open: Counter[tuple[str, bool, int]] = Counter()
        """The same for undecided prompts."""

    def add(self, rule: Invariant, chaos: bool, decision: Decision) -> None:
        """Count a cell. One that passed without its fault being met does not count."""
        idle = not decision.failed and not decision.undecided
        if (decision.outcome in ("unproven", "error") and idle) or decision.why.code == "not-asked":
            return
        self.counted[rule.id, chaos] += 1
        if idle or decision.outcome == "pass" or len(self._lost) + len(self._open) > MOST:
            return
        for place in range(max(decision.failed, decision.undecided).bit_length()):
            if decision.failed >> place & 1:
                self._lost[rule.id, chaos, place] += 1
            if decision.undecided >> place & 1:
                self._open[rule.id, chaos, place] += 1

    def compute_difference(self) -> PairedDifference | None:
        """Return chaos minus calm; None if nothing was decided in both."""
        if len(self._lost) + len(self._open) > MOST:
            return None
        rules: set[str] = set()
        paired = compute_paired_difference(self._iter_pairs(rules))
        return paired and replace(paired, rules=len(rules))

    def _iter_pairs(self, rules: set[str]) -> Iterator[RatePair]:
        """Yield the pairs; rules that have some are added to `rules`."""
        numbers: dict[object, int] = {}
        for rule in self._plan.invariants:
            if not self.counted[rule.id, False] or not self.counted[rule.id, True]:
                continue
            for place, task in enumerate(self._plan.get_tasks(rule.id)):
                calm, chaos = self._compute_rate(rule.id, False, place), self._compute_rate(rule.id, True, place)
                if calm is not None and chaos is not None:
                    rules.add(rule.id)
                    yield RatePair(numbers.setdefault(task, len(numbers)), calm, chaos)

    def _compute_rate(self, rule: str, chaos: bool, place: int) -> float | None:
        decided = self.counted[rule, chaos] - self._open[rule, chaos, place]
        return 1 - self._lost[rule, chaos, place] / decided if decided else None


# -- paired ----------------------------------------------------------------------------------------
PSEUDO = 2.0
"""Pseudo prompts, one that lost everything and one that gained everything: without them few prompts seem too certain.
"""
_WIDER = 2.05
"""Replaces 1.96: found by simulation."""


class RatePair(NamedTuple):
    """One rule on one prompt: its pass rates in calm and under chaos, 0 to 1."""

    prompt: int
    calm: float
    chaos: float


def compute_paired_difference(pairs: Iterable[RatePair]) -> PairedDifference | None:
    """Return chaos minus calm in points, the mean over all pairs; None if there are none.

    Rules of one prompt may fail together, so each prompt counts once: the mean of its rules. The interval is Bonett and
    Price's for paired proportions, over prompts.
    """
    sums: dict[int, tuple[float, int]] = {}
    for one in pairs:
        change, count = sums.get(one.prompt, (0.0, 0))
        sums[one.prompt] = change + one.chaos - one.calm, count + 1
    prompts = [(change, count) for change, count in sums.values() if count]
    n = sum(count for _, count in prompts)
    if not n:
        return None
    # Bonett and Price add two pseudo prompts, one for each direction, before they compute the variance. Kish's n
    # replaces the number of prompts, because a prompt with many rules weighs more than one with few.
    mean = fsum(change for change, _ in prompts) / n
    square = fsum(change * change / count for change, count in prompts) / n
    low, high = _compute_limits(mean, square, n * n / sum(count * count for _, count in prompts))
    interval = Interval(floor(low * 1e4) / 100, ceil(high * 1e4) / 100, "paired", len(prompts))
    return PairedDifference(round(100 * mean, 2) + 0.0, interval, n)


def _compute_limits(mean: float, square: float, n: float) -> tuple[float, float]:
    centre = mean * n / (n + PSEUDO)
    spread = ((square * n + PSEUDO) / (n + PSEUDO) - centre * centre) / (n + PSEUDO)
    half = _WIDER * sqrt(spread)
    return max(-1.0, min(mean, centre - half)), min(1.0, max(mean, centre + half))


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


CellUse: TypeAlias = Literal["calm", "chaos", "outside"]
"""How a cell is used; `outside`: it is not part of the score."""


class Summary:
    """Counts cells; only failed ones are stored."""

    def __init__(self, tally: Tally) -> None:
        self.failed: list[Cell] = []
        self.tries: Counter[Tries] = Counter()
        """How many counted cells with several replicas had these tries."""
        self.flaky = 0
        self.group_weights: Collection[float] = ()
        """The weights of counted cells, summed over cells that share trials."""
        self.failed_groups = 0
        """Such groups with a failed cell."""
        self.outside_scenarios = tally.spec.beside
        self._cells: Counter[tuple[CellUse, str, float]] = Counter()
        """By use, outcome and weight."""
        self.comparison: CalmComparison | None = None
        """The comparison of chaos with calm, if a complete plan has both."""
        if tally.plan.whole and len({scenario.calm for scenario in tally.plan.scenarios}) == 2:
            self.comparison = CalmComparison(tally)
        self._count_cells(tally)

    # Rules with their own trials are a group each. The others share the trials of their scenario and params, so all of
    # them map to one negative number, which cannot collide with a position.
    def _count_cells(self, tally: Tally) -> None:
        rules, open_ = set(), {}
        own, width = frozenset(tally.spec.cell_rules), len(tally.spec.params)
        height = width * len(tally.plan.invariants)
        groups: dict[int, float] = {}
        lost: set[int] = set()
        outside, comparison = tally.spec.beside, self.comparison
        for position, column, chaos, decision in tally.iter_decisions():
            outcome = decision.outcome
            if comparison is not None and outcome != "n/a":
                comparison.add(column.rule, chaos, decision)
            if outside and tally.plan.get_key(position).scenario in outside:
                # The calm column of a chaos run is not part of its score, but failures there fail the run.
                self._cells["outside", outcome, column.weight] += 1
                if outcome == "fail":
                    self.failed.append(tally.build_cell(position, decision))
                elif outcome in ("error", "unproven") and column.critical:
                    open_[column] = column.rule.id
                continue
            self._cells["chaos" if chaos else "calm", outcome, column.weight] += 1
            self.flaky += decision.flaky
            if outcome in ("pass", "fail"):
                rules.add(column)
                alone = column.rule.id in own or column.rule.probes
                group = position if alone else -1 - position // height * width - position % width
                groups[group] = groups.get(group, 0.0) + column.weight
                if outcome == "fail":
                    self.failed.append(tally.build_cell(position, decision))
                    lost.add(group)
                if decision.tries:
                    self.tries[decision.tries] += 1
            elif outcome != "n/a" and column.critical:
                open_[column] = column.rule.id
        self.group_weights = groups.values()
        self.failed_groups = len(lost)
        self.rules = {column.rule.id for column in rules}
        """The rules with a counted cell."""
        self.uncounted = tuple(name for column, name in open_.items() if column not in rules)
        """Critical rules that applied somewhere and have no counted cell."""

    def count(self, *outcomes: str) -> int:
        """Return how many cells have one of these outcomes."""
        return sum(n for (use, outcome, _), n in self._cells.items() if use != "outside" and outcome in outcomes)

    def sum_weights(self, *uses: CellUse) -> Sums:
        """Return the weights of the cells with these uses."""
        by = {"pass": 0.0, "fail": 0.0, "error": 0.0}
        for (use, outcome, weight), n in sorted(self._cells.items()):
            if use in uses and outcome in by:
                by[outcome] += weight * n
        return Sums(*by.values())

    @property
    def all(self) -> Sums:
        """The weights of all cells that are part of the score."""
        return self.sum_weights("calm", "chaos")

    @property
    def calm(self) -> Sums:
        """The weights of the cells in calm, also if they only serve as a comparison."""
        return self.sum_weights("outside" if self.outside_scenarios else "calm")

    @property
    def errors(self) -> int:
        """The cells with a harness error, those that are not part of the score included."""
        return sum(n for (_, outcome, _), n in self._cells.items() if outcome == "error")

    @cached_property
    def critical(self) -> list[Cell]:
        """The failed cells of critical rules."""
        return [cell for cell in self.failed if cell.critical]

    @cached_property
    def ordinary(self) -> list[Cell]:
        """The other failed cells, which a minimum score may tolerate."""
        return [cell for cell in self.failed if not cell.critical]
