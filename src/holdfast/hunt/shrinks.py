"""The failures of a hunt that are being shrunk, what they came to, and whether they differ from calm."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log

from msgspec import Struct
from msgspec.structs import replace

from holdfast.hunt.evidence import Trials
from holdfast.hunt.outcomes import Failure, FaultCause, Plan, PlanOutcome, list_bits
from holdfast.hunt.shrink import ShrinkStep, is_stronger, plan_next_step, weaken

CONFIRM_RUNS, MOST_CONFIRM_RUNS = 5, 20
"""With noise: fresh runs of a minimal plan, at least and at most."""
FEW_CALM_RUNS, MOST_CALM_RUNS = 10, 20
"""With noise: calm runs that all causes share. Ten are enough as long as none of them fails."""
FAILING, CALM_FAILS = 0.5, 0.08
"""With noise: the rates that the test compares. Calm counts as failing at least this often, even if it never did."""
SPARE_TESTS = 5
"""With noise: a cause is tested as if at least so many were, so that later ones do not make it insignificant."""
MOST_BROKEN_RUNS = 3
"""Runs of a plan in which the check of a rule may end in an error before the plan is given up."""
ERROR = 0.05
"""With noise: the chance that a hunt reports a cause that fails no more often than calm does."""


class Shrinking(Struct, eq=False):
    """A failure that is being shrunk."""

    points: Plan
    failure: Failure
    cause: Plan = 0
    """The minimal plan that is reported; 0 before there is one. Weaker forms of it may still be tried."""
    weakens: bool = False
    """Whether no fault can be left out, and weaker ones are tried."""
    runs_before: int = -1
    """With noise: the runs of the minimal plan before it was chosen; -1 before the test starts."""
    is_large: bool = False
    """Whether the cause has more faults than the hunt looks for, so that what is open comes first."""
    plans: dict[Plan, None] = {}
    """The plan that failed first, and those that were tried then, in order."""


class Shrinks:
    """The failures that are being shrunk, and what they came to."""

    def __init__(self, trials: Trials, only: Failure | None = None, *, most: int) -> None:
        """`only`: the only failure to shrink, if any; `most`: the faults of a cause that the hunt looks for."""
        self.trials = trials
        self._most = most
        self.failing: list[tuple[Plan, Failure]] = []
        """Every set that fails although no smaller one does, with its failure. A cause is the weakest at its sites."""
        self.reported: list[Shrinking] = []
        self.unconfirmed: list[tuple[Plan, Failure]] = []
        self.under_way: list[Shrinking] = []
        self._waiting: dict[tuple[Plan, Failure], Plan] = {}
        """By what a failed trial met, and its failure: the plan of the first such trial."""
        self._looked_at: set[tuple[Plan, Failure]] = set()
        """Sets that were shrunk, or that turned out to be flaky: another failure of them starts nothing."""
        self._tests = 0
        """With noise: how many minimal plans were compared with calm."""
        self._only = only

    def add(self, outcome: PlanOutcome) -> None:
        """Remember the failures of a trial."""
        failures = [failure for failure in outcome.failures if self._only in (None, failure)]
        for failure in failures if outcome.met else ():
            self._waiting.setdefault((outcome.met, failure), outcome.plan)

    def list_unfinished(self) -> list[tuple[Plan, Failure]]:
        """For each failure that the budget left without a cause: the smallest plan that failed like that."""
        pending = {one.failure for one in self.under_way if not one.cause}
        pending |= {failure for met, failure in self._waiting if (met, failure) not in self._looked_at}
        smallest: dict[Failure, Plan] = {}
        lookalikes = self.trials.list_lookalikes()
        for one in self.trials.outcomes:
            # In the order of the verdicts: that of a set of texts differs from process to process.
            for failure in (of for of in one.failures if of in pending and one.met):
                plan = smallest.get(failure, one.plan)
                if one.plan.bit_count() <= plan.bit_count() and not (
                    self._is_explained(one.met, failure) or self._has_alike(one.met, failure, lookalikes)
                ):
                    smallest[failure] = one.plan
        return [(plan, failure) for failure, plan in smallest.items()]

    def find_significant(self) -> list[Shrinking]:
        """Return the causes; with noise, those that fail significantly more often than calm."""
        if not self.trials.noisy:
            return self.reported
        accepted = apply_holm([self._compute_ratio(one) for one in self.reported], self._tests)
        return [one for one, is_accepted in zip(self.reported, accepted, strict=True) if is_accepted]

    def _compute_ratio(self, one: Shrinking) -> float:
        # What was chosen because it failed looks worse than it is, so only the runs after that count.
        return compute_likelihood_ratio(self.trials, self.trials.of_plan[one.points][one.runs_before :], one.failure)

    def count_runs(self, points: Plan, failure: Failure) -> FaultCause:
        return FaultCause(points, failure, *self.trials.count(points, failure), *self.trials.count(0, failure))

    def count_runs_anywhere(self, points: Plan, failure: Failure) -> FaultCause:
        """Count the runs of the plan; if the plan itself never failed, count all trials that met it."""
        counts = self.count_runs(points, failure)
        met = [failure in one.failures for one in self.trials.outcomes if not points & ~one.met]
        return counts if counts.failed else replace(counts, failed=sum(met), runs=len(met))

    def _is_explained(self, met: int, failure: Failure) -> bool:
        """Whether a set that is known to fail like that, or one of the same classes, was met."""
        if self._has_alike(met, failure, self.trials.classes.of):
            return True
        # With noise, telling a stronger form of a cause from a new cause would cost more trials than it is worth.
        return self.trials.noisy and any(
            one.failure == failure and is_stronger(self.trials.points, met, one.cause) for one in self.reported
        )

    def _has_alike(self, met: int, failure: Failure, alike: Sequence[int]) -> bool:
        return any(
            of == failure and all(alike[number] & met for number in list_bits(points)) for points, of in self.failing
        )

    def _start_shrinks(self, deferred: bool) -> None:
        """Start one shrink at a time for each failure: its result usually explains the other trials that failed so."""
        busy = {one.failure for one in self._list_active(deferred)}
        lookalikes = self.trials.list_lookalikes()
        for met, failure in sorted(self._waiting, key=lambda one: (one[0].bit_count(), one)):
            if (met, failure) in self._looked_at or self._is_explained(met, failure):
                del self._waiting[met, failure]
            elif failure not in busy and (deferred or not self._has_alike(met, failure, lookalikes)):
                busy.add(failure)
                self._looked_at.add((met, failure))
                first = self._waiting.pop((met, failure))
                self.under_way.append(Shrinking(met, failure, plans={first: None}))

    def advance(self, *, deferred: bool = False) -> list[Plan]:
        """Return the trials that the shrinks need next, without those that only look for weaker faults."""
        plans: list[Plan] = []
        while not plans:
            self._start_shrinks(deferred)
            active = self._list_active(deferred)
            if not active:
                break
            for one in active:
                plans += self._advance(one, deferred)
        return plans if self.trials.noisy else list(dict.fromkeys(plans))

    def _list_active(self, deferred: bool) -> list[Shrinking]:
        """Return the shrinks that come before what is open; if `deferred`, also those that come after it."""
        active = [one for one in self.under_way if not one.weakens or self.trials.noisy]
        return [one for one in active if deferred or not one.is_large]

    def advance_weakening(self) -> list[Plan]:
        """Return the next trial that looks for a weaker form of a known cause."""
        for one in [one for one in self.under_way if not one.is_large]:
            if plans := self._advance(one):
                return plans
        return []

    def _advance(self, one: Shrinking, deferred: bool = False) -> list[Plan]:
        """Advance a shrink by one step and return its trials: none if it is finished, only looks for weaker faults,
        or turns out to be large and is not `deferred` yet.
        """
        step = self._take_step(one)
        one.is_large = step.is_large and not one.weakens
        if one.is_large and not deferred:
            return []
        for plan in step.plans:
            runs = self.trials.of_plan.get(plan, ())
            if sum(run.breaks(one.failure.rule) for run in runs) >= MOST_BROKEN_RUNS:
                # The rule cannot be judged, so whether each of the faults is necessary stays unknown.
                step = ShrinkStep(step.points, result="flaky")
                break
        one.points = step.points
        if (one.points, one.failure) in self.unconfirmed:
            self.under_way.remove(one)
            return []
        one.plans.update(dict.fromkeys(step.plans))
        if step.plans:
            # With noise every step takes at least two runs.
            first = self.trials.noisy and step.plans[0] not in self.trials.of_plan
            return [*step.plans, *step.plans] if first else list(step.plans)
        return self._finish(one, step)

    def _take_step(self, one: Shrinking) -> ShrinkStep:
        if one.weakens and one.runs_before < 0:
            others = [points for points, _ in self.failing if points != one.points]
            step = weaken(self.trials, one.points, one.failure, others)
            return plan_next_step(self.trials, step.points, one.failure, self._most) if step.result else step
        if one.runs_before < 0:
            return plan_next_step(self.trials, one.points, one.failure, self._most)
        return self._test(one)

    def _finish(self, one: Shrinking, step: ShrinkStep) -> list[Plan]:
        """Return the trials that follow the last step of dropping, weakening or testing."""
        if step.result == "flaky":
            self.under_way.remove(one)
            if not one.cause:
                self.unconfirmed.append((one.points, one.failure))
                self._looked_at.add((one.points, one.failure))
        elif any(
            (other.cause, other.failure) == (one.points, one.failure) for other in self.reported if other is not one
        ):
            # Another shrink came to the same cause.
            self.under_way.remove(one)
            self.reported = [other for other in self.reported if other is not one]
        elif self.trials.noisy and one.runs_before < 0:
            if one.weakens:
                one.runs_before = len(self.trials.of_plan[one.points])
                self._tests += 1
            one.weakens = True
            return self._advance(one)
        else:
            self._report(one)
            if one.weakens:
                self.under_way.remove(one)
            one.weakens = True
        return []

    def _report(self, one: Shrinking) -> None:
        if (one.points, one.failure) not in self.failing:
            self.failing.append((one.points, one.failure))
        # A part that was only seen to pass next to other faults may fail by itself.
        same = [other for other in self.reported if other.failure == one.failure and other.cause != one.points]
        for other in (other for other in same if not one.points & ~other.cause):
            self.reported.remove(other)
            if other in self.under_way:
                self.under_way.remove(other)
        if not one.cause:
            self.reported.append(one)
            self._credit_others(one)
        one.cause = one.points

    def _credit_others(self, one: Shrinking) -> None:
        """The other faults of a failed trial that is now explained are less worth another trial: a guess, no claim."""
        for run in self.trials.outcomes:
            if one.failure in run.failures and all(self._is_explained(run.met, failure) for failure in run.failures):
                for number in list_bits(one.points & run.met):
                    self.trials.similar.hold(run.met & ~(1 << number))

    def _test(self, one: Shrinking) -> ShrinkStep:
        """With noise: compare fresh runs with calm, until the difference is significant or clearly absent."""
        # Wald's sequential test. After each run it compares how likely the runs are if the plan fails half of the time
        # with how likely they are if it fails as often as calm. It stops as soon as the ratio is large (a cause) or
        # small (as in calm), which takes far fewer runs than a fixed number for the same error. The ratio must exceed
        # the number of tests over ERROR, because each further plan that is tested is another chance to be wrong.
        calm_failed, calm_runs = self.trials.count(0, one.failure)
        calm = [0] * (MOST_CALM_RUNS if calm_failed else FEW_CALM_RUNS)
        runs = len(self.trials.of_plan[one.points]) - one.runs_before
        if runs < CONFIRM_RUNS or calm_runs < len(calm):
            return ShrinkStep(one.points, [*[one.points] * max(0, CONFIRM_RUNS - runs), *calm[calm_runs:]])
        ratio = self._compute_ratio(one)
        if ratio * ERROR >= max(SPARE_TESTS, self._tests):
            return ShrinkStep(one.points, result="minimal")
        return (
            ShrinkStep(one.points, result="flaky")
            if ratio <= ERROR or runs >= MOST_CONFIRM_RUNS
            else ShrinkStep(one.points, [one.points])
        )


def compute_likelihood_ratio(trials: Trials, fresh: Sequence[PlanOutcome], failure: Failure) -> float:
    """Return how much better these runs fit a plan that fails half of the time than one that fails as often as
    calm.
    """
    calm_failed, calm_runs = trials.count(0, failure)
    calm = max(CALM_FAILS, (calm_failed + 1) / (calm_runs + 2))
    failed = sum(failure in outcome.failures for outcome in fresh)
    passed = len(fresh) - failed
    if calm >= FAILING:
        return 0.0
    return exp(failed * log(FAILING / calm) + passed * log((1 - FAILING) / (1 - calm)))


def apply_holm(ratios: Sequence[float], tests: int) -> list[bool]:
    """Return which of the likelihood ratios are significant, by Holm's correction over all plans that were tested.

    The inverse of a likelihood ratio is a p-value that stays valid however often one looks at it.
    """
    # Holm: the most significant of n results must pass the bar for n tests, the next one only that for n - 1, and so
    # on until the first that does not. The chance that a hunt reports any wrong cause stays below ERROR, and fewer
    # right ones are lost than with the bar for n tests throughout.
    accepted = [False] * len(ratios)
    for place, number in enumerate(sorted(range(len(ratios)), key=lambda one: -ratios[one])):
        if ratios[number] * ERROR < tests - place:
            break
        accepted[number] = True
    return accepted
