"""Search: which fault sets to try next, so that few trials find every small set that breaks a rule.

The search is a pure function of the outcomes it is shown, in rounds of fixed size: neither the number of workers nor
the order in which trials end changes what is tried. A killed hunt is resumed by showing it the stored outcomes.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import combinations
from math import log
from typing import TypeAlias

from holdfast.hunt.evidence import Count, Coverage, FaultCause, Plan, PlanOutcome, Point, PointState, bits

ROUND = 8
"""Trials of one round. Fixed, so that the plan does not depend on the number of workers."""
LARGEST_PLAN = 8
CANDIDATES = 48
"""Points that are weighed for the next place of a plan: those with the most open pairs."""
GOES_ON = 0.7
"""How often an agent goes on after a fault of which nothing is known yet."""
PRIOR = 2
"""How many observations that assumption is worth."""
WORTH_A_TRIAL = 0.05
"""Expected coverage below which a plan is not tried."""
CALM_RUNS = 20
"""Noisy: calm trials that all causes are compared with."""
STEP_RUNS = 6
"""Noisy: runs of one shrink step at most; two failures decide."""
CONFIRM_RUNS = 20
"""Noisy: fresh runs of a cause at the end, at most."""
FAILING, CALM_LEAST = 0.5, 0.08
"""Noisy: how often a cause fails that is worth finding, and how often calm may fail although it was never seen to."""
CONFIRMED, REFUTED = log(0.95 / 0.01), log(0.05 / 0.99)
"""Noisy: where Wald's test stops, for one wrong cause in a hundred and one lost in twenty."""


STATES: tuple[PointState, ...] = ("held", "failed", "infeasible", "open")
Shrinking: TypeAlias = Generator[Sequence[Plan], None, None]


class Trials:
    """All outcomes so far, and what follows from them."""

    def __init__(self, points: Sequence[Point], *, noisy: bool) -> None:
        self.points = points
        self.noisy = noisy
        self.of_plan: dict[Plan, list[PlanOutcome]] = {}
        self.held = 0
        """Points that were met in a trial in which no rule failed."""
        self.held_with: list[int] = []
        """By point: the points that were met together with it in such a trial."""
        self.ended_by: list[int] = []
        """By point: trials that it was met in, and that went no further."""
        self.went_on: list[int] = []
        self.at_site: dict[int, int] = {}
        self.sites = 0
        self.grow()

    def grow(self) -> None:
        """Takes up points that were added."""
        more = len(self.points) - len(self.held_with)
        for tally in (self.held_with, self.ended_by, self.went_on):
            tally += [0] * more
        for number, point in enumerate(self.points):
            self.at_site[point.site] = self.at_site.get(point.site, 0) | 1 << number
            self.sites |= 1 << point.site

    def add(self, outcome: PlanOutcome) -> None:
        self.of_plan.setdefault(outcome.plan, []).append(outcome)
        for number in bits(outcome.met):
            beyond = self.sites >> self.points[number].site + 1
            if outcome.reached >> self.points[number].site + 1:
                self.went_on[number] += 1
            elif beyond:
                self.ended_by[number] += 1
        if not outcome.failures:
            self.held |= outcome.met
            for number in bits(outcome.met):
                self.held_with[number] |= outcome.met & ~(1 << number)

    def survival(self, number: int) -> float:
        """How likely the agent goes on after this point; exact once it had a trial of its own."""
        alone = self.of_plan.get(1 << number)
        if alone and not self.noisy:
            return float(bool(alone[0].reached >> self.points[number].site + 1))
        seen = self.went_on[number] + self.ended_by[number]
        prior = PRIOR if self.noisy else PRIOR / 20  # without noise one look tells nearly all
        return (self.went_on[number] + prior * GOES_ON) / (seen + prior)

    def cuts_off(self, number: int) -> int:
        """Points that a trial of this point alone does not reach: they cannot be met together with it."""
        alone = self.of_plan.get(1 << number)
        if not alone or not all(outcome.met for outcome in alone):
            return 0
        reached = 0
        for outcome in alone:
            reached |= outcome.reached
        return sum(points for site, points in self.at_site.items() if not reached >> site & 1)

    def passed(self, plan: Plan) -> bool:
        """Whether one trial met all of it without a failure; with noise, one trial proves nothing."""
        if self.noisy:
            return False
        if plan.bit_count() <= 2:
            first = plan & -plan
            rest = plan & ~first
            return bool(self.held_with[first.bit_length() - 1] & rest if rest else self.held & first)
        return any(not plan & ~o.met and not o.failures for seen in self.of_plan.values() for o in seen)

    def count(self, plan: Plan, failure: str) -> tuple[int, int]:
        """How often the plan failed like that, of how many runs."""
        runs = self.of_plan.get(plan, ())
        return sum(failure in outcome.failures for outcome in runs), len(runs)


class Search:
    """What to try next, given all that was seen."""

    def __init__(
        self,
        points: Sequence[Point],
        *,
        noisy: bool = False,
        order: int = 2,
        round_size: int = ROUND,
        known: Sequence[Plan] = (),
    ) -> None:
        self.points = list(points)
        self.seen = Trials(self.points, noisy=noisy)
        self.causes: list[FaultCause] = []
        self.flaky: list[FaultCause] = []
        self.gave_up: list[PlanOutcome] = []
        self.shrink_steps: dict[tuple[Plan, str], list[tuple[Plan, int, int]]] = {}
        """By the points and the failure of a cause: the plans that led to it, with their failed runs and runs."""
        self.failing: list[tuple[int, str]] = []
        """Every set that fails and of which no smaller one does; a cause is the weakest of those at its sites."""
        self._order = order
        self._known_plans = list(dict.fromkeys(known))
        self._noisy = noisy
        self._round = round_size
        self._shrinking: list[tuple[Shrinking, int, str]] = []
        """Shrinks under way, with their points and failure: pairs of those points are not tried meanwhile."""
        self._looked_at: set[tuple[int, str]] = set()

    @property
    def fixed(self) -> list[Plan]:
        """Known plans that were tried and did not fail."""
        tried = [(plan, self.seen.of_plan.get(plan, ())) for plan in self._known_plans]
        return [plan for plan, runs in tried if runs and not any(outcome.failures for outcome in runs)]

    def add_points(self, points: Sequence[Point]) -> None:
        """Adds points at sites that were first reached under a fault; they are numbered after the others."""
        self.points += points
        self.seen.grow()

    def state_of(self, number: int) -> PointState:
        """Whether the point held, failed, cannot be met, or is open."""
        if any(points == 1 << number for points, _ in self.failing):
            return "failed"
        if self.seen.held >> number & 1:
            return "held"
        return "infeasible" if self._unmet_alone() >> number & 1 else "open"

    def coverage(self) -> Coverage:
        """What can be said about every point and every pair."""
        states = [self.state_of(number) for number in range(len(self.points))]
        pairs = [self._pair_state(n, m) for n, m in combinations(range(len(self.points)), 2) if self._apart(n, m)]
        return Coverage(*(Count(len(all_), *(all_.count(state) for state in STATES)) for all_ in (states, pairs)))

    def _apart(self, number: int, other: int) -> bool:
        return self.points[number].site != self.points[other].site

    def _pair_state(self, number: int, other: int) -> PointState:
        pair = 1 << number | 1 << other
        if any(not points & ~pair for points, _ in self.failing):
            return "failed"
        if self.seen.held_with[number] >> other & 1:
            return "held"
        cut = self.seen.cuts_off(number) | self.seen.cuts_off(other) | self._unmet_alone()
        return "infeasible" if cut & pair else "open"

    def next(self, outcomes: Sequence[PlanOutcome]) -> list[Plan]:
        """Takes the outcomes of the last round, in any order; the next round, empty when there is nothing left."""
        outcomes = sorted(outcomes, key=lambda outcome: (outcome.plan, outcome.met, outcome.failures))
        for outcome in outcomes:
            self.seen.add(outcome)
            if outcome.gave_up:
                self.gave_up.append(outcome)
        for outcome in outcomes:
            for failure in outcome.failures:
                if outcome.met and not self._known(outcome.met, failure):
                    self._looked_at.add((outcome.met, failure))
                    self._shrinking.append((self._shrink(outcome.met, failure), outcome.met, failure))
        plans = [plan for plan in self._known_plans if plan not in self.seen.of_plan][: self._round]
        while not plans:
            plans = self._advance_shrinks()
            if len(plans) < self._round:
                plans += self._cover(self._round - len(plans))
            if not self._shrinking:
                break
        return plans

    def _known(self, met: int, failure: str) -> bool:
        """Whether a cause accounts for the failure, or a shrink that is under way will find one."""
        shrinking = any(failure == of and not met & ~suspects for _, suspects, of in self._shrinking)
        return shrinking or self._explained(met, failure) or (met, failure) in self._looked_at

    def _explained(self, met: int, failure: str) -> bool:
        if self._noisy and any(self._covers(met, cause.points) for cause in self.causes if cause.failure == failure):
            return True
        return any(not points & ~met and of == failure for points, of in self.failing)

    def _advance_shrinks(self) -> list[Plan]:
        plans: list[Plan] = []
        under_way = []
        for task, suspects, failure in self._shrinking:
            for wanted in task:
                if wanted:  # a step whose results are known already asks for nothing
                    plans += [plan for plan in wanted if self._noisy or plan not in plans]
                    under_way.append((task, suspects, failure))
                    break
        self._shrinking = under_way
        calm_runs = len(self.seen.of_plan.get(0, ()))
        if self._noisy and under_way and calm_runs < CALM_RUNS:
            plans += [0] * min(2, CALM_RUNS - calm_runs)
        return plans

    # -- covering -----------------------------------------------------------------------------------------------------
    def _cover(self, count: int) -> list[Plan]:
        """Plans that are expected to prove the most open points and pairs, greedily.

        Most faults let the agent go on, so a plan with a point at every site proves up to fifteen pairs in one trial.
        A fault that ends the run (a cutter) hides those planned behind it. It is therefore worth most at the end of a
        plan, and the search learns from every trial which points are cutters.
        """
        open_points, open_pairs = self._open()
        failing = [points for points, _ in self.failing]
        if not self._noisy:
            self._set_aside(open_pairs)
        plans: list[Plan] = []
        while len(plans) < count:
            plan = self._best_plan(open_points, open_pairs, failing)
            if not plan:
                break
            if self._noisy or plan not in self.seen.of_plan:
                plans.append(plan)
            open_points &= ~plan
            for number in bits(plan):
                open_pairs[number] &= ~plan
        return plans or self._settle(count)

    def _open(self) -> tuple[int, list[int]]:
        """Points, and by point its pairs, that are neither known to hold nor to fail nor to be infeasible."""
        everything = (1 << len(self.points)) - 1
        alone = 0
        for points, _ in self.failing:
            if points.bit_count() == 1:
                alone |= points
        suspects_alone = sum(1 << p for p in range(len(self.points)) if self._suspect(1 << p))
        usable = everything & ~alone & ~self._unmet_alone() & ~suspects_alone
        pairs = []
        cut = [self.seen.cuts_off(number) for number in range(len(self.points))]
        for number, point in enumerate(self.points):
            if not usable >> number & 1:
                pairs.append(0)
                continue
            closed = self.seen.held_with[number] | self.seen.at_site[point.site] | cut[number]
            for points, _ in self.failing:
                if points >> number & 1 and points.bit_count() == 2:
                    closed |= points
            for _, suspects, _ in self._shrinking:
                if suspects >> number & 1:
                    closed |= suspects
            pairs.append(usable & ~closed)
        for number in range(len(self.points)):
            for other in bits(cut[number]):
                pairs[other] &= ~(1 << number)
        return usable & ~self.seen.held & ~suspects_alone, pairs

    def _set_aside(self, open_pairs: list[int]) -> None:
        """Leaves out, for now, pairs of a point that seems to end the run with points behind it."""
        for number, point in enumerate(self.points):
            if self.seen.ended_by[number] and not self.seen.went_on[number]:
                behind = sum(points for site, points in self.seen.at_site.items() if site > point.site)
                for other in bits(open_pairs[number] & behind):
                    open_pairs[other] &= ~(1 << number)
                open_pairs[number] &= ~behind

    def _suspect(self, plan: Plan) -> bool:
        """Whether a shrink is looking at just this."""
        return any(suspects == plan for _, suspects, _ in self._shrinking)

    def _unmet_alone(self) -> int:
        """Points that were not met in a trial of their own: the agent never gets there, or nothing changes for it."""
        unmet = 0
        for number in range(len(self.points)):
            alone = self.seen.of_plan.get(1 << number)
            if alone and not any(outcome.met for outcome in alone):
                unmet |= 1 << number
        return unmet

    def _best_plan(self, open_points: int, open_pairs: list[int], failing: list[int]) -> Plan:
        survival = [self.seen.survival(number) for number in range(len(self.points))]
        degree = {n: pairs.bit_count() + (open_points >> n & 1) for n, pairs in enumerate(open_pairs)}
        ranked = sorted((n for n in degree if degree[n]), key=lambda n: (-degree[n] * self.points[n].weight, n))
        if not ranked:
            return 0
        members = ranked[:1]
        plan, taken_sites = 1 << members[0], 1 << self.points[members[0]].site
        total = self._expected(members, open_points, open_pairs, survival)
        while len(members) < LARGEST_PLAN:
            best, best_total = -1, total
            weighed = 0
            for number in ranked:
                if taken_sites >> self.points[number].site & 1:
                    continue
                weighed += 1
                if weighed > CANDIDATES:
                    break
                with_it = plan | 1 << number
                if any(not points & ~with_it for points in failing):
                    continue
                value = self._expected([*members, number], open_points, open_pairs, survival)
                if value > best_total + 1e-9:
                    best, best_total = number, value
            if best < 0:
                break
            members.append(best)
            plan |= 1 << best
            taken_sites |= 1 << self.points[best].site
            total = best_total
        return plan if total > WORTH_A_TRIAL else 0

    def _expected(self, members: list[int], open_points: int, open_pairs: list[int], survival: list[float]) -> float:
        """How many open points and pairs a trial of these is expected to meet."""
        value, alive, before = 0.0, 1.0, 0
        for number in sorted(members, key=lambda n: self.points[n].site):
            fresh = (open_pairs[number] & before).bit_count() + (open_points >> number & 1)
            value += alive * fresh * self.points[number].weight
            alive *= survival[number]
            before |= 1 << number
        return value

    def _settle(self, count: int) -> list[Plan]:
        """Trials that turn assumptions into knowledge: suspected cutters alone, then pairs never met together."""
        _, open_pairs = self._open()
        unsure = [n for n, pairs in enumerate(open_pairs) if pairs and 1 << n not in self.seen.of_plan]
        plans = [1 << number for number in unsure]
        plans += [1 << n | 1 << m for n, pairs in enumerate(open_pairs) for m in bits(pairs) if m > n]
        return [plan for plan in plans if plan not in self.seen.of_plan][:count]

    # -- shrinking ----------------------------------------------------------------------------------------------------
    def _shrink(self, points: int, failure: str) -> Shrinking:
        """To the smallest set that still fails with the same failure; each step is proven by trials."""
        if self._noisy and not (yield from self._fails(points, failure)):
            self.flaky.append(self._cause(points, failure))
            return
        points = yield from self._drop(points, failure)
        if self._explained(points, failure):
            return
        if self._noisy and not (yield from self._confirmed(points, failure)):
            self.flaky.append(self._cause(points, failure))
            return
        self.failing.append((points, failure))
        if any(self._covers(points, cause.points) and cause.failure == failure for cause in self.causes):
            return  # stronger faults at the same sites: the same cause
        cause = self._cause(points, failure)
        self.causes.append(cause)
        weakest = yield from self._weaken(points, failure)
        if weakest != points:
            self.failing.append((weakest, failure))
        # Another shrink may have come to the same cause, or to a stronger fault at the same sites, meanwhile.
        self.causes = [
            one
            for one in self.causes
            if one != cause and not (one.failure == failure and self._covers(one.points, weakest))
        ]
        if any(one.failure == failure and self._covers(weakest, one.points) for one in self.causes):
            return
        self.causes.append(self._cause(weakest, failure))

    def _cause(self, points: int, failure: str) -> FaultCause:
        return FaultCause(points, failure, *self.seen.count(points, failure), *self.seen.count(0, failure))

    def _covers(self, points: int, cause: int) -> bool:
        """Whether every fault of the cause has its like among the points: at the same site, and at least as strong."""
        strongest = {self.points[number].site: self.points[number].rung for number in bits(points)}
        return all(strongest.get(self.points[n].site, -1) >= self.points[n].rung for n in bits(cause))

    def _drop(self, points: int, failure: str) -> Generator[Sequence[Plan], None, int]:
        """Leaves out faults until every one that is left is necessary."""
        while not self._explained(points, failure) and points.bit_count() > 1:
            smaller = [points & ~(1 << number) for number in bits(points)]
            if points.bit_count() > 2:
                # Most causes are single faults and pairs. Where few are open within the plan, trying just those is
                # quicker than leaving out one fault after the other.
                small = [1 << n for n in bits(points)] + [1 << n | 1 << m for n, m in combinations(bits(points), 2)]
                small = [plan for plan in small if not self.seen.passed(plan)]
                if not self._noisy and len(small) <= len(smaller):
                    smaller = [*small, *smaller]
            smaller = [plan for plan in smaller if not self.seen.passed(plan)]
            if not self._noisy:
                yield [plan for plan in smaller[: len(list(bits(points))) + 1] if plan not in self.seen.of_plan]
            for plan in smaller:
                if (yield from self._fails(plan, failure)):
                    points = self._met_when_failing(plan, failure)
                    break
            else:
                break
        return points

    def _weaken(self, points: int, failure: str) -> Generator[Sequence[Plan], None, int]:
        """Replaces each fault by the weakest of its site that still fails, by bisection: a ladder is in order."""
        for number in list(bits(points)):
            rest = points & ~(1 << number)
            rungs = sorted(bits(self.seen.at_site[self.points[number].site]), key=lambda n: self.points[n].rung)
            low, high = 0, rungs.index(number)
            while low < high:
                middle = (low + high) // 2
                plan = rest | 1 << rungs[middle]
                slides = any(
                    known != plan and not known & ~plan for known, _ in self.failing
                )  # to a cause that is known already
                fails = not slides and not self.seen.passed(plan) and (yield from self._fails(plan, failure))
                low, high = (low, middle) if fails else (middle + 1, high)
            points = rest | 1 << rungs[high]
        return points

    def _fails(self, plan: Plan, failure: str) -> Generator[Sequence[Plan], None, bool]:
        """Whether it fails like that: once if nothing is random, else if two of at most six runs do."""
        while True:
            failed, runs = self.seen.count(plan, failure)
            if failed >= (2 if self._noisy else 1):
                return True
            if runs >= (STEP_RUNS if self._noisy else 1) or (self._noisy and runs >= 4 and not failed):
                return False
            yield [plan]

    def _met_when_failing(self, plan: Plan, failure: str) -> int:
        """What was met of a plan each time it failed: a cause holds nothing that was not met."""
        for outcome in self.seen.of_plan[plan]:
            if failure in outcome.failures:
                plan &= outcome.met
        return plan

    def _confirmed(self, plan: Plan, failure: str) -> Generator[Sequence[Plan], None, bool]:
        """Whether fresh runs, those before it was chosen left out, fail more often than calm does: Wald's test.

        What was chosen because it failed looks worse than it is, so only new runs count.
        """
        failed_before, runs_before = self.seen.count(plan, failure)
        while True:
            failed, runs = (
                now - then
                for now, then in zip(self.seen.count(plan, failure), (failed_before, runs_before), strict=True)
            )
            calm_failed, calm_runs = self.seen.count(0, failure)
            calm = max(CALM_LEAST, (calm_failed + 1) / (calm_runs + 2))
            weight = failed * log(FAILING / calm) + (runs - failed) * log((1 - FAILING) / (1 - calm))
            if calm >= FAILING or weight <= REFUTED or runs >= CONFIRM_RUNS:
                return False
            if weight >= CONFIRMED:
                return True
            yield [plan]


class Shrink:
    """Shrinks one plan that failed; `next` as of a search."""

    def __init__(self, points: Sequence[Point], plan: Plan, failure: str, *, noisy: bool = False) -> None:
        self.search = Search(points, noisy=noisy, known=[plan])
        self.failure = failure

    @property
    def causes(self) -> list[FaultCause]:
        return [cause for cause in self.search.causes if cause.failure == self.failure]

    def next(self, outcomes: Sequence[PlanOutcome]) -> list[Plan]:
        """Takes the outcomes of the last round; the next round, empty when the plan is as small as it gets."""
        return self.search.next(outcomes)
