"""Shrinks a plan that failed to the smallest set of faults that still fails, and tests it against calm.

Each step is a function of the trials alone. It keeps no state, so a hunt that was killed continues where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import exp, log
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from holdfast.hunt.evidence import STEP_RUNS, FaultCause, Plan, PlanOutcome, Point, Trials, bits

SINGLE = 4
"""How much likelier a cause is a particular single fault than a particular pair."""
AGAIN = 8
"""How much likelier a suspect becomes with each failed trial that it was met in."""
MISSES = 0.3
"""With noise: how often a cause that was met does not fail the trial."""
LARGEST_HALVED = 10
"""Plans with more faults are halved by position: they have too many parts to weigh each."""
PROOF_RUNS = 2
"""Without noise: runs of a minimal plan itself. All of them must fail."""
CONFIRM_RUNS, MOST_CONFIRM_RUNS = 5, 20
"""With noise: fresh runs of a minimal plan, at least and at most."""
FEW_CALM_RUNS, MOST_CALM_RUNS = 10, 20
"""With noise: calm runs that all causes share. Ten are enough as long as none of them fails."""
FAILING, CALM_FAILS = 0.5, 0.08
"""With noise: the rates that the test compares. Calm counts as failing at least this often, even if it never did."""
SPARE_TESTS = 5
"""With noise: a cause is tested as if at least so many were, so that later ones do not make it insignificant."""
ERROR = 0.05
"""With noise: the chance that a hunt reports a cause that fails no more often than calm does."""


class ShrinkStep(Struct, frozen=True):
    """What a shrink needs next, or its result."""

    points: Plan
    """The smallest set that is known to fail."""
    plans: Sequence[Plan] = ()
    """Trials to run next."""
    result: Literal["", "minimal", "flaky"] = ""


def next_step(trials: Trials, points: Plan, failure: str) -> ShrinkStep:
    """Removes faults from a plan until each that is left is necessary."""
    points = _smallest_failing(trials, points, failure)
    if trials.noisy and not trials.failed(points, failure):
        # One failure may be chance: the plan must fail again before it passes twice.
        failed, runs = trials.count(points, failure)
        return ShrinkStep(points, result="flaky") if runs - failed >= 2 else ShrinkStep(points, [points])
    numbers = list(bits(points))
    rests = smaller(points)
    open_rests = [rest for rest in rests if not trials.passed(rest, failure)]
    if not open_rests:
        return _prove(trials, points, rests, failure)
    if suspects := _suspects(trials, numbers, failure):
        return ShrinkStep(points, [_half(trials, numbers, suspects, failure)])
    # No pair is left, so the cause is larger: remove one fault at a time.
    return ShrinkStep(points, open_rests[:1])


def smaller(points: Plan) -> list[Plan]:
    """The plans with one fault less; a single fault has none."""
    return [rest for number in bits(points) if (rest := points & ~(1 << number))]


def _smallest_failing(trials: Trials, points: Plan, failure: str) -> Plan:
    """The smallest part of the plan that failed. Only points that were met count."""
    if trials.noisy:
        parts = [plan for plan in trials.of_plan if plan and not plan & ~points and trials.failed(plan, failure)]
    else:
        failed = (one.met for one in trials.outcomes if failure in one.failures)
        parts = [met for met in failed if met and not met & ~points]
    return min([points, *parts], key=lambda part: (part.bit_count(), part))


def _prove(trials: Trials, points: Plan, rests: list[Plan], failure: str) -> ShrinkStep:
    """The set fails by itself, and every set with one fault less was tried by itself and does not."""
    missing = [plan for plan in [points, *rests] if plan not in trials.of_plan]
    if missing:
        return ShrinkStep(points, missing)
    failed, runs = trials.count(points, failure)
    if trials.noisy:
        return ShrinkStep(points, result="minimal")
    if failed < runs:
        return ShrinkStep(points, result="flaky")
    return ShrinkStep(points, [points]) if runs < PROOF_RUNS else ShrinkStep(points, result="minimal")


def _suspects(trials: Trials, numbers: list[int], failure: str) -> dict[Plan, float]:
    """The single faults and pairs that may be the cause, and how likely each is."""
    singles = [1 << number for number in numbers]
    small = singles + ([one | other for one, other in combinations(singles, 2)] if len(numbers) > 2 else [])
    failed = [one.met for one in trials.outcomes if failure in one.failures]
    return {
        plan: SINGLE ** (2 - plan.bit_count())
        * AGAIN ** sum(not plan & ~met for met in failed)
        * (MISSES ** trials.passes(plan, failure) if trials.noisy else 1)
        for plan in small
        if not trials.passed(plan, failure)
    }


def _half(trials: Trials, numbers: list[int], suspects: dict[Plan, float], failure: str) -> Plan:
    """The part of a plan that contains the cause with a chance closest to one half.

    Each such trial halves the suspects. Removing one fault at a time would take a trial per fault.
    """
    target = sum(suspects.values()) / 2
    best, distance = 0, float("inf")
    for part in _parts(numbers):
        weight = sum(chance for plan, chance in suspects.items() if not plan & ~part)
        if weight and abs(weight - target) < distance - 1e-9 and not _is_settled(trials, part, failure):
            best, distance = part, abs(weight - target)
    return best or max(suspects, key=lambda plan: (suspects[plan], -plan))


def _parts(numbers: list[int]) -> Iterable[Plan]:
    if len(numbers) > LARGEST_HALVED:
        middle = len(numbers) // 2
        quarters = (numbers[:middle], numbers[middle:], numbers[::2], numbers[1::2], numbers[:-1], numbers[1:])
        yield from (sum(1 << number for number in part) for part in quarters)
        return
    for size in range(1, len(numbers)):
        for part in combinations(numbers, size):
            yield sum(1 << number for number in part)


def _is_settled(trials: Trials, part: Plan, failure: str) -> bool:
    """Whether another trial of the part would say nothing new."""
    if trials.noisy:
        _, runs = trials.count(part, failure)
        return runs >= STEP_RUNS or trials.passed(part, failure) or trials.failed(part, failure)
    return any(not part & ~one.plan and (part & ~one.met or part == one.plan) for one in trials.outcomes)


def weaken(trials: Trials, points: Plan, failure: str, causes: Iterable[Plan]) -> ShrinkStep:
    """Replaces each fault by the weakest of its site that still fails; by bisection, because a ladder is in order."""
    changed = True
    while changed:
        changed = False
        for number in bits(points):
            rest = points & ~(1 << number)
            ladder = trials.ladders[trials.points[number].site]
            low, high = 0, ladder.index(number)
            while low < high:
                middle = (low + high) // 2
                plan = rest | 1 << ladder[middle]
                # A plan that contains another known cause fails because of that one.
                slides = any(cause != plan and not cause & ~plan for cause in causes)
                if slides or trials.passed(plan, failure):
                    low = middle + 1
                elif trials.failed(plan, failure):
                    high = middle
                else:
                    return ShrinkStep(points, [plan])
            if ladder[high] != number:
                points, changed = rest | 1 << ladder[high], True
                break
    return ShrinkStep(points, result="minimal")


def likelihood_ratio(trials: Trials, fresh: Sequence[PlanOutcome], failure: str) -> float:
    """How much better these runs fit a plan that fails half of the time than one that fails like calm."""
    calm_failed, calm_runs = trials.count(0, failure)
    calm = max(CALM_FAILS, (calm_failed + 1) / (calm_runs + 2))
    failed = sum(failure in outcome.failures for outcome in fresh)
    passed = len(fresh) - failed
    if calm >= FAILING:
        return 0.0
    return exp(failed * log(FAILING / calm) + passed * log((1 - FAILING) / (1 - calm)))


def holm(ratios: Sequence[float], tests: int) -> list[bool]:
    """Which of the likelihood ratios are significant, by Holm's correction over all plans that were tested.

    The inverse of a likelihood ratio is a p-value that stays valid however often one looks at it.
    """
    accepted = [False] * len(ratios)
    for place, number in enumerate(sorted(range(len(ratios)), key=lambda one: -ratios[one])):
        if ratios[number] * ERROR < tests - place:
            break
        accepted[number] = True
    return accepted


def is_stronger(points: Sequence[Point], plan: Plan, cause: Plan) -> bool:
    """Whether the plan has a fault at each site of the cause that is at least as strong."""
    rungs = {points[number].site: points[number].rung for number in bits(plan)}
    return all(rungs.get(points[number].site, -1) >= points[number].rung for number in bits(cause))


class Shrinking(Struct, eq=False):
    """A failure that is being shrunk."""

    points: Plan
    failure: str
    cause: Plan = 0
    """The minimal plan that is reported; 0 before there is one. Weaker forms of it may still be tried."""
    weakens: bool = False
    """Whether no fault can be left out, and weaker ones are tried."""
    runs_before: int = -1
    """With noise: the runs of the minimal plan before it was chosen; -1 before the test starts."""
    plans: dict[Plan, None] = {}
    """The plan that failed first, and those that were tried then, in order."""


class Shrinks:
    """The failures that are being shrunk, and what they came to."""

    def __init__(self, trials: Trials, only: str | None = None) -> None:
        self.trials = trials
        self.failing: list[tuple[Plan, str]] = []
        """Every set that fails although no smaller one does, with its failure. A cause is the weakest at its sites."""
        self.reported: list[Shrinking] = []
        self.unconfirmed: list[tuple[Plan, str]] = []
        self.under_way: list[Shrinking] = []
        self._waiting: dict[tuple[Plan, str], Plan] = {}
        """By what a failed trial met, and its failure: the plan of the first such trial."""
        self._looked_at: set[tuple[Plan, str]] = set()
        """Sets that were shrunk, or that turned out to be flaky: another failure of them starts nothing."""
        self._tests = 0
        """With noise: how many minimal plans were compared with calm."""
        self._only = only
        """The only failure to shrink, if there is one."""

    def add(self, outcome: PlanOutcome) -> None:
        """Remembers the failures of a trial."""
        failures = [failure for failure in outcome.failures if self._only in (None, failure)]
        for failure in failures if outcome.met else ():
            self._waiting.setdefault((outcome.met, failure), outcome.plan)

    def unfinished(self) -> list[tuple[Plan, str]]:
        """For each failure that the budget left without a cause: the smallest plan that failed like that."""
        pending = {one.failure for one in self.under_way if not one.cause}
        pending |= {failure for met, failure in self._waiting if (met, failure) not in self._looked_at}
        smallest: dict[str, Plan] = {}
        for one in self.trials.outcomes:
            for failure in pending.intersection(one.failures) if one.met else ():
                plan = smallest.get(failure, one.plan)
                if one.plan.bit_count() <= plan.bit_count() and not self._is_explained(one.met, failure):
                    smallest[failure] = one.plan
        return [(plan, failure) for failure, plan in smallest.items()]

    def significant(self) -> list[Shrinking]:
        """The causes; with noise, those that fail significantly more often than calm."""
        if not self.trials.noisy:
            return self.reported
        accepted = holm([self._ratio(one) for one in self.reported], self._tests)
        return [one for one, is_accepted in zip(self.reported, accepted, strict=True) if is_accepted]

    def _ratio(self, one: Shrinking) -> float:
        # What was chosen because it failed looks worse than it is, so only the runs after that count.
        return likelihood_ratio(self.trials, self.trials.of_plan[one.points][one.runs_before :], one.failure)

    def counted(self, points: Plan, failure: str) -> FaultCause:
        return FaultCause(points, failure, *self.trials.count(points, failure), *self.trials.count(0, failure))

    def counted_anywhere(self, points: Plan, failure: str) -> FaultCause:
        """The same; if the plan itself never failed, of all trials that met it."""
        found = self.counted(points, failure)
        met = [failure in one.failures for one in self.trials.outcomes if not points & ~one.met]
        return found if found.failed else replace(found, failed=sum(met), runs=len(met))

    def _is_explained(self, met: int, failure: str) -> bool:
        """Whether a set that is known to fail like that, or one of the same classes, was met."""
        alike = self.trials.alike
        if any(of == failure and all(alike[number] & met for number in bits(points)) for points, of in self.failing):
            return True
        # With noise, telling a stronger form of a cause from a new cause would cost more trials than it is worth.
        return self.trials.noisy and any(
            one.failure == failure and is_stronger(self.trials.points, met, one.cause) for one in self.reported
        )

    def _start_shrinks(self) -> None:
        """One shrink at a time for each failure: its result usually explains the other trials that failed like that."""
        busy = {one.failure for one in self.under_way if not one.weakens or self.trials.noisy}
        for met, failure in sorted(self._waiting, key=lambda one: (one[0].bit_count(), one)):
            if (met, failure) in self._looked_at or self._is_explained(met, failure):
                del self._waiting[met, failure]
            elif failure not in busy:
                busy.add(failure)
                self._looked_at.add((met, failure))
                first = self._waiting.pop((met, failure))
                self.under_way.append(Shrinking(met, failure, plans={first: None}))

    def advance(self) -> list[Plan]:
        """The trials that the shrinks need next, without those that only look for weaker faults."""
        plans: list[Plan] = []
        while not plans:
            self._start_shrinks()
            active = [one for one in self.under_way if not one.weakens or self.trials.noisy]
            if not active:
                break
            for one in active:
                plans += self._advance(one)
        return plans if self.trials.noisy else list(dict.fromkeys(plans))

    def advance_weakening(self) -> list[Plan]:
        """The next trial that looks for a weaker form of a known cause."""
        for one in list(self.under_way):
            if plans := self._advance(one):
                return plans
        return []

    def _advance(self, one: Shrinking) -> list[Plan]:
        """One step of a shrink; no trials if it is finished, or only looks for weaker faults."""
        step = self._step(one)
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

    def _step(self, one: Shrinking) -> ShrinkStep:
        if one.weakens and one.runs_before < 0:
            others = [points for points, _ in self.failing if points != one.points]
            step = weaken(self.trials, one.points, one.failure, others)
            return next_step(self.trials, step.points, one.failure) if step.result else step
        if one.runs_before < 0:
            return next_step(self.trials, one.points, one.failure)
        return self._test(one)

    def _finish(self, one: Shrinking, step: ShrinkStep) -> list[Plan]:
        """What follows the last step of dropping, of weakening, or of the test."""
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
        if not one.cause:
            self.reported.append(one)
        one.cause = one.points

    def _test(self, one: Shrinking) -> ShrinkStep:
        """With noise: compares fresh runs with calm, until the difference is significant or clearly absent."""
        calm_failed, calm_runs = self.trials.count(0, one.failure)
        calm = [0] * (MOST_CALM_RUNS if calm_failed else FEW_CALM_RUNS)
        runs = len(self.trials.of_plan[one.points]) - one.runs_before
        if runs < CONFIRM_RUNS or calm_runs < len(calm):
            return ShrinkStep(one.points, [*[one.points] * max(0, CONFIRM_RUNS - runs), *calm[calm_runs:]])
        ratio = self._ratio(one)
        if ratio * ERROR >= max(SPARE_TESTS, self._tests):
            return ShrinkStep(one.points, result="minimal")
        return (
            ShrinkStep(one.points, result="flaky")
            if ratio <= ERROR or runs >= MOST_CONFIRM_RUNS
            else ShrinkStep(one.points, [one.points])
        )
