"""Points and pairs that need no more trials, and the states that a hunt can therefore report."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.hunt.classes import FailingSets
from holdfast.hunt.evidence import Trials
from holdfast.hunt.outcomes import Count, Coverage, Failure, Plan, PointState, list_bits


class Closed:
    """Sets that need no more trials: sets that fail, points that are never met, and pairs that cannot be met
    together.
    """

    def __init__(self, trials: Trials, failing: Sequence[tuple[Plan, Failure]]) -> None:
        self._trials = trials
        self.failing = FailingSets([points for points, _ in failing], trials.classes.of)
        self.never_met = trials.find_never_met()
        self.never_judged = trials.find_never_judged()
        self.apart: dict[int, int] = {}
        """By point: the points that cannot be met together with it."""
        for number in trials.list_alone():
            cut = trials.find_cut_off(number)
            self.apart[number] = self.apart.get(number, 0) | cut
            for other in list_bits(cut):
                self.apart[other] = self.apart.get(other, 0) | 1 << number
        for one, other in trials.find_unmet_pairs():
            self.apart[one] = self.apart.get(one, 0) | 1 << other
            self.apart[other] = self.apart.get(other, 0) | 1 << one

    def find_open(self) -> int:
        """Return the points that neither held nor failed, and that a trial may still decide."""
        closed = self.failing.alone | self._trials.held[0] | self.never_met | self.never_judged
        return (1 << len(self._trials.points)) - 1 & ~closed

    def get_point_state(self, number: int) -> PointState:
        if self.failing.alone >> number & 1:
            return "failed"
        if self._trials.held[0] >> number & 1:
            return "held"
        return "infeasible" if self.never_met >> number & 1 else "open"

    def count_coverage(self) -> Coverage:
        """Return how many points and pairs are in each state."""
        trials = self._trials
        everything = (1 << len(trials.points)) - 1
        failed, held = self.failing.alone, trials.held[0] & ~self.failing.alone
        infeasible = self.never_met & ~failed & ~held
        counts = [mask.bit_count() for mask in (held, failed, infeasible, everything & ~failed & ~held & ~infeasible)]
        pairs = [0] * 5
        for number, point in enumerate(trials.points):
            elsewhere = everything & ~trials.at_site[point.site]
            lone = failed >> number & 1
            bad = elsewhere if lone else elsewhere & (failed | self.failing.together.get(number, 0))
            good = (trials.classes.held_with[number] | trials.held_with[0][number]) & elsewhere & ~bad
            never = elsewhere if infeasible >> number & 1 else elsewhere & (infeasible | self.apart.get(number, 0))
            never &= ~bad & ~good
            rows = (elsewhere, good, bad, never, good & ~trials.held_with[0][number])
            for place, row in enumerate(rows):
                pairs[place] += row.bit_count()
        total, good_pairs, bad_pairs, never_pairs, alike = (count // 2 for count in pairs)
        left = total - good_pairs - bad_pairs - never_pairs
        return Coverage(
            Count(len(trials.points), *counts), Count(total, good_pairs, bad_pairs, never_pairs, left, alike)
        )
