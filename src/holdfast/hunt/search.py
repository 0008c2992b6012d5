"""Search: which fault sets to try next, so that few trials find every small set that breaks a rule.

The search is a pure function of the outcomes it is given, in rounds: neither the number of workers nor the order in
which trials end changes what it tries. A hunt that was killed is resumed by giving it the stored outcomes again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from types import MappingProxyType

from holdfast.hunt.classes import FailingSets
from holdfast.hunt.closed import Closed
from holdfast.hunt.evidence import Trials
from holdfast.hunt.open_work import OpenWork
from holdfast.hunt.outcomes import Failure, FaultCause, Plan, PlanOutcome, Point, Portion
from holdfast.hunt.shrink import list_smaller
from holdfast.hunt.shrinks import Shrinks
from holdfast.hunt.triples import OpenTriples, TriedTriples

ROUND = 8
"""The most trials of one round. Fixed, so that the plans do not depend on the number of workers."""
FIRST, GROWTH = 6, 16
"""The first trials come one by one and the next ones in pairs; later, a round has one trial for every 16 that ended.
The first ones show which faults end trials, and every later plan depends on that."""
FRESH = 0.5
"""Expected coverage from which a plan comes before weaker forms of known causes are looked for."""
FIXED_RUNS, NOISY_FIXED_RUNS = 2, 3
"""How often a known cause must be met without a failure before it counts as fixed."""
AUDIT_RUNS = 3
"""Without noise: how often a cause, and each plan with one fault less, is run before the hunt ends. With noise, which
every live model is assumed to have, the sequential test takes at least CONFIRM_RUNS fresh runs of the cause."""


class Search:
    """Decides what to try next."""

    def __init__(
        self,
        points: Sequence[Point],
        *,
        noisy: bool = False,
        order: int = 2,
        known: Mapping[Plan, Sequence[str]] = MappingProxyType({}),
        only: Failure | None = None,
        shard: tuple[int, int] = (0, 1),
    ) -> None:
        """`order`: 1 covers points, 2 pairs, 3 triples, 0 nothing. `known`: plans to try first, with the rules that
        they broke. `only`: to shrink. `shard`: the number of this shard, from 0, and how many there are.
        """
        self.trials = Trials(points, noisy=noisy)
        self._only = only
        self._most = order or len(points)
        self._shrinks = Shrinks(self.trials, only, most=self._most)
        self._known = dict(known)
        self._order = order
        self._shard = shard
        self._triples = TriedTriples()

    @property
    def points(self) -> list[Point]:
        return self.trials.points

    @property
    def causes(self) -> list[FaultCause]:
        """The minimal plans that fail; with noise, those that fail significantly more often than calm."""
        return [self._shrinks.count_runs(one.cause, one.failure) for one in self._shrinks.find_significant()]

    @property
    def forms(self) -> list[FaultCause]:
        """The causes, and what they were before their faults were weakened: it fails, too."""
        if self.trials.noisy:
            return self.causes
        return [self._shrinks.count_runs(*one) for one in self._shrinks.failing]

    @property
    def flaky(self) -> list[FaultCause]:
        """What failed and did not confirm, or was not confirmed before the budget ended."""
        proven = self._shrinks.find_significant()
        doubtful = [(one.cause, one.failure) for one in self._shrinks.reported if one not in proven]
        flaky = dict.fromkeys([*self._shrinks.unconfirmed, *doubtful, *self._shrinks.list_unfinished()])
        return [self._shrinks.count_runs_anywhere(*one) for one in flaky]

    @property
    def fixed(self) -> list[Plan]:
        """Known plans that no longer fail although all of their faults were met."""
        runs = count_runs_for_fixed(self.trials.noisy)
        return [plan for plan in self._known if not self._is_failing(plan) and self._find_met_runs(plan) >= runs]

    @property
    def undecided(self) -> list[Plan]:
        """Known plans that did not fail, but were not met, or not judged, often enough to count as fixed."""
        runs = count_runs_for_fixed(self.trials.noisy)
        return [plan for plan in self._known if not self._is_failing(plan) and self._find_met_runs(plan) < runs]

    def _is_failing(self, plan: Plan) -> bool:
        return any(one.failures and not plan & ~one.met for one in self.trials.of_plan.get(plan, ()))

    def _find_met_runs(self, plan: Plan) -> int:
        runs = [one for one in self.trials.of_plan.get(plan, ()) if one.judged and not plan & ~one.met]
        # A rule that nobody could judge, because the agent gave no answer, may still be broken.
        return sum(not set(one.unproven_rules) & set(self._known[plan]) for one in runs)

    @property
    def shrink_steps(self) -> dict[tuple[Plan, Failure], list[tuple[Plan, int, int]]]:
        """By the points and the failure of a cause: the plans that led to it, with their failed runs and their runs."""
        return {
            (one.cause, one.failure): [
                (plan, *self.trials.count(plan, one.failure))
                for plan in [*(plan for plan in one.plans if plan != one.cause), one.cause]
                if plan in self.trials.of_plan
            ]
            for one in self._shrinks.reported
        }

    @property
    def closed(self) -> Closed:
        """What needs no more trials, and the states of points and pairs that follow from it."""
        return Closed(self.trials, self._shrinks.failing)

    def add_points(self, points: Sequence[Point]) -> None:
        """Add points at sites that were first reached under a fault; they are numbered after the others."""
        self.trials.add_points(points)

    def next(self, outcomes: Sequence[PlanOutcome]) -> list[Plan]:
        """Take the outcomes of the last round, in any order, and return the next round; an empty one ends the hunt.

        A plan that occurs twice is to be run twice. Plan 0 is a calm trial.
        """
        for outcome in sorted(outcomes, key=lambda one: (one.plan, one.met, one.failures, one.shape)):
            self.trials.add(outcome)
            self._shrinks.add(outcome)
        # Two runs of one plan that ended differently: from now on no single run proves anything.
        runs = [[one for one in self.trials.of_plan[outcome.plan] if not one.broken] for outcome in outcomes]
        if any(len({(one.met, one.failures) for one in same}) > 1 for same in runs):
            self.expect_noise()
        most = count_runs_for_fixed(self.trials.noisy)
        plans = (
            [plan for plan in self.undecided if len(self.trials.of_plan.get(plan, ())) < most]
            or self._shrinks.advance()
            or self._cover()
            or self._shrinks.advance(deferred=True)
            or self._verify_determinism()
        )
        return plans[:ROUND]

    def expect_noise(self) -> None:
        """Look at all trials so far again, as those of an agent that is not deterministic."""
        if self.trials.noisy:
            return
        before, self.trials = self.trials, Trials(self.trials.points, noisy=True)
        self.trials.ways.expect(before.ways.to)
        self._shrinks = Shrinks(self.trials, self._only, most=self._most)
        for outcome in before.outcomes:
            self.trials.add(outcome)
            self._shrinks.add(outcome)

    def _verify_determinism(self) -> list[Plan]:
        """Repeat the trials that decide about a cause: if one ends differently, the agent is not deterministic."""
        if self.trials.noisy:
            return []
        # A trial failed, and the faults that it met do not fail by themselves: the same plan must fail again.
        unconfirmed = set(self._shrinks.unconfirmed)
        doubtful = [
            one.plan
            for one in self.trials.outcomes
            if not unconfirmed.isdisjoint((one.met, failure) for failure in one.failures)
        ]
        causes = [one.cause for one in self._shrinks.reported]
        plans = [*doubtful, *(plan for cause in causes for plan in [cause, *list_smaller(cause)])]
        return [plan for plan in dict.fromkeys(plans) if len(self.trials.of_plan.get(plan, ())) < AUDIT_RUNS]

    def _cover(self) -> list[Plan]:
        """Return plans that cover what is open. In each round, one trial looks for a weaker form of a known cause."""
        if self._order < 1:
            return self._shrinks.advance_weakening()
        suspects = [one.points for one in self._shrinks.under_way if not one.is_large]
        closed = self.closed
        ended = len(self.trials.outcomes)
        size = min(ROUND, max(1 + (ended >= FIRST), ended // GROWTH))
        guess = FailingSets([points for points, _ in self._shrinks.failing], self.trials.list_lookalikes())
        own = Portion(self.trials.points, *self._shard)
        # A retry or a fallback is reached only under another fault, so a fault there is one of a pair: first come the
        # single faults at calls that the agent always makes.
        late = self.trials.ways.late
        stages = [late, 0] if late and closed.find_open() & ~late else [0]
        for left_out, level in product(stages, range(len(self.trials.held))):
            work = OpenWork(
                self.trials, closed, guess, suspects, own, order=self._order, level=level, left_out=left_out
            )
            if plans := work.choose_plans(size, FRESH):
                return plans
            weaker = self._shrinks.advance_weakening()
            plans = list(dict.fromkeys([*weaker, *work.choose_plans(size - len(weaker))]))
            if plans:
                return plans
        if self._order < 3:
            return []
        self._triples.read(self.trials.outcomes)
        return OpenTriples(self.trials, closed, guess, own, self._triples).choose_plans(size)


def count_runs_for_fixed(noisy: bool) -> int:
    """Return how often a known cause must be met without a failure before it counts as fixed."""
    return NOISY_FIXED_RUNS if noisy else FIXED_RUNS
