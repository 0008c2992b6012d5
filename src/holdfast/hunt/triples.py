"""Plans for faults that only break a rule three at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from holdfast.hunt.classes import FailingSets
from holdfast.hunt.closed import Closed
from holdfast.hunt.evidence import Trials
from holdfast.hunt.open_work import LARGEST_PLAN
from holdfast.hunt.outcomes import Plan, Portion, list_bits

MOST_COMBINED = 64
"""Points that are combined in triples, those worth most first: more have too many triples to plan in time."""


class OpenTriples:
    """The triples of points at different sites that were not met together in a trial in which no rule failed."""

    def __init__(self, trials: Trials, closed: Closed, guess: FailingSets, own: Portion) -> None:
        self._trials = trials
        self._own = own
        self._closed = closed
        self._guess = guess
        self._held: set[Plan] = set()
        for outcome in trials.outcomes:
            if outcome.judged and not outcome.failures:
                self._held.update(_triples(outcome.met))

    def plans(self, count: int) -> list[Plan]:
        """Returns plans that each begin with an open triple and add points that cover more open triples.

        A triple that a larger plan with it did not meet is tried by itself. After that it is not tried again.
        """
        plans: list[Plan] = []
        for triple in self._open():
            if len(plans) == count:
                break
            if triple in self._held:  # a plan of this round has it
                continue
            is_hidden = any(not triple & ~plan for plan in self._trials.of_plan)
            plan = triple if is_hidden else self._extended(triple)
            plans.append(plan)
            self._held.update(_triples(plan))
        return plans

    def _open(self) -> Iterator[Plan]:
        trials = self._trials
        held = list_bits(trials.held[0] & ~self._closed.failing.alone & ~self._guess.alone)
        usable = sorted(sorted(held, key=lambda number: (-trials.points[number].weight, number))[:MOST_COMBINED])
        for (_, one), (place, other) in combinations(list(enumerate(usable)), 2):
            pair = 1 << one | 1 << other
            if not self._fits(other, 1 << one):
                continue
            for third in usable[place + 1 :]:
                triple = pair | 1 << third
                if triple in self._held or triple in trials.of_plan or not self._own.contains(triple):
                    continue
                if self._fits(third, pair):
                    yield triple

    def _extended(self, plan: Plan) -> Plan:
        """Returns the plan with the point of each further site that adds the most open triples."""
        trials = self._trials
        for _, points in sorted(trials.at_site.items()):
            if plan & points or plan.bit_count() == LARGEST_PLAN:
                continue
            fitting = [number for number in list_bits(points & trials.held[0]) if self._fits(number, plan)]
            # A point that ends the trial would hide those behind it.
            lasting = [number for number in fitting if trials.estimate_survival(number) > 0.5]
            if lasting:
                plan |= 1 << max(lasting, key=lambda number: (self._worth(number, plan), -number))
        return plan

    def _worth(self, number: int, plan: Plan) -> int:
        return sum(
            1 << one | 1 << other | 1 << number not in self._held
            for one, other in combinations(list(list_bits(plan)), 2)
        )

    def _fits(self, number: int, plan: Plan) -> bool:
        """Whether the point can be met together with those of the plan, and no known cause is among them."""
        trials, added = self._trials, 1 << number
        apart = (
            trials.at_site[trials.points[number].site] | self._closed.apart.get(number, 0) | trials.find_masked(added)
        )
        failing = (self._closed.failing, self._guess)
        return not plan & apart and not any(sets.contains(plan | added, added) for sets in failing)


def _triples(met: Plan) -> Iterator[Plan]:
    return (1 << one | 1 << two | 1 << three for one, two, three in combinations(list(list_bits(met)), 3))
