"""Plans for faults that only break a rule three at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from holdfast.hunt.classes import FailingSets
from holdfast.hunt.closed import Closed
from holdfast.hunt.evidence import Trials
from holdfast.hunt.open_work import LARGEST_PLAN
from holdfast.hunt.outcomes import Plan, PlanOutcome, Portion, list_bits

MOST_COMBINED = 64
"""Points that are combined in triples, those worth most first: more have too many triples to plan in time."""


class TriedTriples:
    """The triples of points that the plans so far had, and those that held."""

    def __init__(self) -> None:
        # By pair, the points that complete a triple: one row is one operation for all triples of the pair. The rows are
        # kept from round to round, because building them again took most of the planning time.
        self.tried: dict[Plan, int] = {}
        self.held: dict[Plan, int] = {}
        """Met together in a trial in which no rule failed."""
        self._read = 0

    def read(self, outcomes: Sequence[PlanOutcome]) -> None:
        """Add the outcomes that are new since the last call."""
        for outcome in outcomes[self._read :]:
            _add_pairs(self.tried, outcome.plan)
            if outcome.judged and not outcome.failures:
                _add_pairs(self.held, outcome.met)
        self._read = len(outcomes)


class OpenTriples:
    """The triples of points at different sites that were not met together in a trial in which no rule failed."""

    def __init__(self, trials: Trials, closed: Closed, guess: FailingSets, own: Portion, triples: TriedTriples) -> None:
        self._trials = trials
        self._own = own
        self._failing = (closed.failing, guess)
        usable = trials.held[0] & ~closed.failing.alone & ~guess.alone
        by_worth = sorted(list_bits(usable), key=lambda number: (-trials.points[number].weight, number))
        self._usable = sorted(by_worth[:MOST_COMBINED])
        self._apart = {number: self._find_apart(number, closed) for number in list_bits(trials.held[0])}
        """By point: the points that cannot be met together with it, or fail with it."""
        self._tried, self._held = triples.tried, triples.held
        self._planned: dict[Plan, int] = {}
        """By pair: the points that a plan of this round has together with it."""

    def choose_plans(self, count: int) -> list[Plan]:
        """Return plans that each begin with an open triple and add points that cover more open triples.

        A triple that a larger plan with it did not meet is tried by itself. After that it is not tried again.
        """
        plans: list[Plan] = []
        for pair, third in self._list_open():
            if len(plans) == count:
                break
            if self._planned.get(pair, 0) >> third & 1:
                continue
            triple = pair | 1 << third
            is_hidden = self._tried.get(pair, 0) >> third & 1
            plan = triple if is_hidden else self._extend(triple)
            plans.append(plan)
            _add_pairs(self._planned, plan)
        return plans

    def _list_open(self) -> Iterator[tuple[Plan, int]]:
        """Yield each open triple, as its first two points and the number of the third."""
        usable = sum(1 << number for number in self._usable)
        for one, other in combinations(self._usable, 2):
            if self._apart[one] >> other & 1:
                continue
            pair = 1 << one | 1 << other
            later = usable >> other + 1 << other + 1
            for third in list_bits(later & ~self._apart[one] & ~self._apart[other] & ~self._held.get(pair, 0)):
                triple = pair | 1 << third
                if triple not in self._trials.of_plan and self._own.contains(triple) and self._can_add(third, pair):
                    yield pair, third

    def _extend(self, plan: Plan) -> Plan:
        """Return the plan with the point of each further site that adds the most open triples."""
        trials = self._trials
        for _, points in sorted(trials.at_site.items()):
            if plan & points or plan.bit_count() == LARGEST_PLAN:
                continue
            # A point that ends the trial would hide those behind it.
            fitting = [
                number
                for number in list_bits(points & trials.held[0])
                if self._can_add(number, plan) and trials.estimate_survival(number) > 0.5
            ]
            if fitting:
                plan |= 1 << max(fitting, key=lambda number: (self._count_new(number, plan), -number))
        return plan

    def _count_new(self, number: int, plan: Plan) -> int:
        pairs = [1 << one | 1 << other for one, other in combinations(list_bits(plan), 2)]
        return sum(not (self._held.get(pair, 0) | self._planned.get(pair, 0)) >> number & 1 for pair in pairs)

    def _find_apart(self, number: int, closed: Closed) -> int:
        trials = self._trials
        apart = trials.at_site[trials.points[number].site] | closed.apart.get(number, 0)
        return apart | trials.find_masked(1 << number)

    def _can_add(self, number: int, plan: Plan) -> bool:
        """Whether the point can be met together with those of the plan, and no known cause is among them."""
        added = 1 << number
        return not plan & self._apart[number] and not any(sets.contains(plan | added, added) for sets in self._failing)


def _add_pairs(rows: dict[Plan, int], met: Plan) -> None:
    for one, other in combinations(list_bits(met), 2):
        pair = 1 << one | 1 << other
        rows[pair] = rows.get(pair, 0) | met
