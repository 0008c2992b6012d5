"""Every rule on every prompt, in calm and under chaos: counted from decided cells. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil, floor, fsum, sqrt
from typing import NamedTuple

from msgspec.structs import replace

from holdfast.model.score import Interval, PairedDifference
from holdfast.model.spec import Invariant
from holdfast.score.cell import Decision
from holdfast.score.tally import Tally

MOST = 200_000
"""Rules on prompts that did not hold somewhere: with more of them the difference is not worked out."""


class BesideCalm:
    """Cells by rule; single prompts are kept only where they did not hold.

    A prompt's replicas count as the cell has them: it held there or not.
    """

    def __init__(self, tally: Tally) -> None:
        self._plan = tally.plan
        self.counted: dict[tuple[str, bool], int] = {}
        """By rule, and whether it was chaos: cells that count, those that passed among them."""
        self._lost: dict[tuple[str, bool, int], int] = {}
        """By the same and the place of a prompt: how many of them it failed in."""
        self._open: dict[tuple[str, bool, int], int] = {}
        """The same: how many of them left it undecided."""

    def add(self, rule: Invariant, chaos: bool, decision: Decision) -> None:
        """A cell that did not pass. One that passed without its fault met counts nowhere."""
        idle = not decision.failed and not decision.undecided
        if (decision.outcome in ("unproven", "error") and idle) or decision.why.code == "not-asked":
            return
        key = rule.id, chaos
        self.counted[key] = self.counted.get(key, 0) + 1
        if idle or len(self._lost) + len(self._open) > MOST:
            return
        for place in range(max(decision.failed, decision.undecided).bit_length()):
            at = rule.id, chaos, place
            if decision.failed >> place & 1:
                self._lost[at] = self._lost.get(at, 0) + 1
            if decision.undecided >> place & 1:
                self._open[at] = self._open.get(at, 0) + 1

    def difference(self) -> PairedDifference | None:
        """Chaos minus calm; None if nothing was decided in both."""
        if len(self._lost) + len(self._open) > MOST:
            return None
        rules: set[str] = set()
        found = paired_difference(self._pairs(rules))
        return found and replace(found, rules=len(rules))

    def _pairs(self, rules: set[str]) -> Iterator[RatePair]:
        """The rules that have pairs are put into `rules`."""
        numbers: dict[object, int] = {}
        for rule in self._plan.invariants:
            if not self.counted.get((rule.id, False)) or not self.counted.get((rule.id, True)):
                continue
            for place, task in enumerate(self._plan.tasks(rule.id)):
                calm, chaos = self._rate(rule.id, False, place), self._rate(rule.id, True, place)
                if calm is not None and chaos is not None:
                    rules.add(rule.id)
                    yield RatePair(numbers.setdefault(task, len(numbers)), calm, chaos)

    def _rate(self, rule: str, chaos: bool, place: int) -> float | None:
        decided = self.counted[rule, chaos] - self._open.get((rule, chaos, place), 0)
        return 1 - self._lost.get((rule, chaos, place), 0) / decided if decided else None


# -- paired ----------------------------------------------------------------------------------------
PSEUDO = 2.0
"""Prompts that are added, one that lost all and one that gained all: without them few prompts seem too sure."""
_WIDER = 2.05
"""In the place of 1.96: found by simulation."""


class RatePair(NamedTuple):
    """One rule on one prompt: how often it held in calm and under chaos, 0 to 1."""

    prompt: int
    calm: float
    chaos: float
    rules: int = 1
    """So many rules are alike here."""


def paired_difference(pairs: Iterable[RatePair]) -> PairedDifference | None:
    """Chaos minus calm in points, the mean over all pairs; None if there is none.

    Rules of one prompt may fail together, so that each prompt counts as one: the mean of its rules. The interval is
    Bonett and Price's for paired proportions, of so many prompts.
    """
    sums: dict[int, tuple[float, int]] = {}
    for one in pairs:
        change, count = sums.get(one.prompt, (0.0, 0))
        sums[one.prompt] = change + one.rules * (one.chaos - one.calm), count + one.rules
    known = [(change, count) for change, count in sums.values() if count]
    n = sum(count for _, count in known)
    if not n:
        return None
    mean = fsum(change for change, _ in known) / n
    square = fsum(change * change / count for change, count in known) / n
    low, high = _limits(mean, square, n * n / sum(count * count for _, count in known))
    found = Interval(floor(low * 1e4) / 100, ceil(high * 1e4) / 100, "paired", len(known))
    return PairedDifference(round(100 * mean, 2) + 0.0, found, n)


def _limits(mean: float, square: float, n: float) -> tuple[float, float]:
    centre = mean * n / (n + PSEUDO)
    spread = ((square * n + PSEUDO) / (n + PSEUDO) - centre * centre) / (n + PSEUDO)
    half = _WIDER * sqrt(spread)
    return max(-1.0, min(mean, centre - half)), min(1.0, max(mean, centre + half))
