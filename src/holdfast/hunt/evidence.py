"""What the trials of a hunt showed, as sets of points.

Points are numbered. A set of points is an int whose bits are their numbers, so that a union, a subset test or a count
is one operation. A plan is such a set, with at most one point per call site.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import Literal, TypeAlias

from msgspec import Struct

Plan: TypeAlias = int
PointState: TypeAlias = Literal["held", "failed", "infeasible", "open"]
GOES_ON = 0.7
"""How often an agent continues after a fault about which nothing is known yet."""
PRIOR, NOISY_PRIOR = 0.1, 2.0
"""How many observations that assumption is worth. Without noise, one look says nearly everything."""
STEP_FAILS, STEP_RUNS, STEP_PASSES = 2, 6, 4
"""With noise: a plan fails if 2 of at most 6 runs fail. Four passes without a failure settle it earlier."""
MOST_WAYS = 16
"""Fault sets that are remembered as ways to a site that calm trials do not reach."""
LEVELS = 3
"""With noise: in how many trials a pair must hold before it is no longer worth a trial."""


class Point(Struct, frozen=True):
    """A call site and one mode of its ladder. Sites are numbered in the order in which a calm trial reaches them."""

    site: int
    rung: int
    """Its place on the ladder of its site, from weak to strong."""
    weight: float = 1.0
    """How soon it is worth trying."""
    separate: bool = False
    """Whether it is a class of its own, however alike its trials look: writes, and all calls after the last write."""


class PlanOutcome(Struct, frozen=True):
    """What one trial of a plan showed."""

    plan: Plan
    met: int
    """The points that were met."""
    reached: int
    """The sites that the agent reached, as bits."""
    failures: tuple[str, ...] = ()
    """A key for each rule that failed: the rule, the code and the key of its verdict."""
    shape: str = ""
    """The shape of the trace and how the trial ended. Points whose own trials have the same shape are one class."""
    gave_up: bool = False
    """Whether the agent produced no answer and no write."""
    judged: bool = True
    """Whether the trial says something about the rules: one passed or failed, and none ended in an error."""


class FaultCause(Struct, frozen=True):
    """A minimal plan that fails a rule, how often it did, and how often calm trials failed the same way."""

    points: Plan
    failure: str
    failed: int
    runs: int
    calm_failed: int = 0
    calm_runs: int = 0


class Count(Struct, frozen=True):
    """How many points, or pairs of points at different sites, are in each state."""

    total: int
    held: int
    failed: int
    infeasible: int
    open: int
    alike: int = 0
    """How many of the pairs in `held` were not tried because a pair of the same classes held."""


class Coverage(Struct, frozen=True):
    """What the hunt can say about single faults and about pairs."""

    points: Count
    pairs: Count


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class Trials:
    """All outcomes so far, and what follows from them."""

    def __init__(self, points: Sequence[Point], *, noisy: bool) -> None:
        self.points: list[Point] = []
        self.noisy = noisy
        self.outcomes: list[PlanOutcome] = []
        self.of_plan: dict[Plan, list[PlanOutcome]] = {}
        self.held = [0] * (LEVELS if noisy else 1)
        """By level, from one trial up: the points that were met in so many trials in which no rule failed."""
        self.held_with: list[list[int]] = [[] for _ in self.held]
        """By level and point: the points that held together with it."""
        self.held_alike: list[int] = []
        """By point: the points whose class held together with its class."""
        self.near: list[int] = []
        """By point: points that held with one of its ladder neighbours, and neighbours of those that it held with."""
        self.alike: list[int] = []
        """By point: its class."""
        self.neighbours: list[int] = []
        """By point: the next weaker and the next stronger point of its site."""
        self.ended_by: list[int] = []
        """By point: trials in which it was met and the agent reached no later site."""
        self.went_on: list[int] = []
        self.ladders: dict[int, list[int]] = {}
        """By site: its points, from weak to strong."""
        self.at_site: dict[int, int] = {}
        self.sites = 0
        self.ways: dict[int, list[Plan]] = {}
        """By site that calm trials do not reach: the smallest sets of faults under which the agent reached it."""
        self.missed: list[int] = []
        """By point: the points one of which was met and the other not, although its site was reached."""
        self.missed_again: list[int] = []
        """The same, in at least two trials: one of them seems to mask the other."""
        self.late = 0
        """The points of these sites: retries and fallbacks."""
        self._by_shape: dict[tuple[int, str, tuple[str, ...], int], int] = {}
        self.add_points(points)

    def add_points(self, points: Sequence[Point]) -> None:
        late = {point.site for point in points} - self.at_site.keys() if self.points else ()
        for number, point in enumerate(points, len(self.points)):
            self.at_site[point.site] = self.at_site.get(point.site, 0) | 1 << number
            self.ladders.setdefault(point.site, []).append(number)
            self.sites |= 1 << point.site
            self.alike.append(1 << number)
        self.points += points
        rows = (
            *self.held_with,
            self.held_alike,
            self.near,
            self.neighbours,
            self.ended_by,
            self.went_on,
            self.missed,
            self.missed_again,
        )
        for row in rows:
            row += [0] * len(points)
        self.expect_late(late)
        for site in {point.site for point in points}:
            if site in self.ways:
                self.late |= self.at_site[site]
            ladder = self.ladders[site]
            ladder.sort(key=lambda number: self.points[number].rung)
            for weaker, stronger in pairwise(ladder):
                self.neighbours[weaker] |= 1 << stronger
                self.neighbours[stronger] |= 1 << weaker

    def expect_late(self, sites: Iterable[int]) -> None:
        """Calm trials do not reach these sites."""
        for site in sites:
            self.ways.setdefault(site, [])
            self.late |= self.at_site[site]

    def add(self, outcome: PlanOutcome) -> None:
        self.outcomes.append(outcome)
        self.of_plan.setdefault(outcome.plan, []).append(outcome)
        if not outcome.plan:
            self.expect_late(bits(self.sites & ~outcome.reached))
        for site, ways in self.ways.items():
            met = outcome.met & ~self.at_site[site]
            if outcome.reached >> site & 1 and all(way & ~met for way in ways):
                smallest = [met, *(way for way in ways if met & ~way)]
                self.ways[site] = sorted(smallest, key=lambda way: (way.bit_count(), way))[:MOST_WAYS]
        self._add_missed(outcome)
        for number in bits(outcome.met):
            site = self.points[number].site
            if outcome.reached >> site + 1:
                self.went_on[number] += 1
            elif self.sites >> site + 1:
                self.ended_by[number] += 1
        if outcome.plan == outcome.met and outcome.plan.bit_count() == 1:
            self._classify(outcome)
        if outcome.judged and not outcome.failures:
            self._hold(outcome.met)

    def _add_missed(self, outcome: PlanOutcome) -> None:
        unmet = [n for n in bits(outcome.plan & ~outcome.met) if outcome.reached >> self.points[n].site & 1]
        for number in unmet:
            self.missed_again[number] |= self.missed[number] & outcome.met
            self.missed[number] |= outcome.met
            for other in bits(outcome.met):
                self.missed_again[other] |= self.missed[other] & 1 << number
                self.missed[other] |= 1 << number

    def masked(self, plan: Plan) -> int:
        """The points that seem to mask one of the plan, or to be masked by one."""
        masked = 0
        for number in bits(plan):
            masked |= self.missed_again[number] & ~self.held_with[0][number]
        return masked

    def _hold(self, met: int) -> None:
        """Crosses off the points and pairs that were met; what held before moves up a level."""
        rising = met
        for level, held in enumerate(self.held):
            self.held[level], rising = held | rising, held & rising
        classes = near = 0
        for number in bits(met):
            rising = met & ~(1 << number)
            for row in self.held_with:
                row[number], rising = row[number] | rising, row[number] & rising
            classes |= self.alike[number]
            near |= self.neighbours[number]
            for other in bits(self.neighbours[number]):
                self.near[other] |= met
        for number in bits(met):
            self.near[number] |= near
        for number in bits(classes):
            self.held_alike[number] |= classes

    def _classify(self, outcome: PlanOutcome) -> None:
        """Joins the point with those of its site whose own trials looked the same."""
        number = outcome.plan.bit_length() - 1
        if self.points[number].separate or not outcome.shape:
            return
        key = (self.points[number].site, outcome.shape, outcome.failures, outcome.reached)
        joined = self._by_shape.get(key, 0) | 1 << number
        self._by_shape[key] = joined
        # What held with one member now holds with all of them, and the other way round.
        together = 0
        for member in bits(joined):
            self.alike[member] = joined
            together |= self.held_alike[member]
        for member in bits(joined):
            self.held_alike[member] = together
        for other in bits(together):
            self.held_alike[other] |= joined

    def survival(self, number: int) -> float:
        """How likely the agent continues after this point; exact after a trial of its own, unless there is noise."""
        if not self.noisy and (alone := self.of_plan.get(1 << number)):
            return float(bool(alone[0].reached >> self.points[number].site + 1))
        prior = NOISY_PRIOR if self.noisy else PRIOR
        return (self.went_on[number] + prior * GOES_ON) / (self.went_on[number] + self.ended_by[number] + prior)

    def cuts_off(self, number: int) -> int:
        """The points that no trial of this point alone reached: they cannot be met together with it."""
        alone = self.of_plan.get(1 << number, ())
        if not any(outcome.met for outcome in alone):
            return 0
        reached = 0
        for outcome in alone:
            reached |= outcome.reached
        cut = sum(self.at_site[site] for site in bits(self.sites & ~reached))
        # To a retry or a fallback, another fault may lead: unless it is at the same site, or cut off itself.
        blocked = self.at_site[self.points[number].site] & ~(1 << number) | cut & ~self.late
        for site in bits(self.sites & ~reached):
            if site in self.ways and not all(way & blocked for way in self.ways[site]):
                cut &= ~self.at_site[site]
        return cut

    def own_plan(self, points: Plan, avoid: int = 0) -> Plan:
        """The smallest plan that is expected to meet the points: with the faults that lead to their sites."""
        return self.with_ways(points, avoid) or points

    def with_ways(self, plan: Plan, avoid: int = 0) -> Plan:
        """The plan with the faults that lead to its sites; 0 if none do that fit in. Those to avoid come last."""
        waiting = plan & self.late
        while waiting:
            number = waiting.bit_length() - 1
            waiting ^= 1 << number
            ways = self.ways[self.points[number].site]
            if any(not way & ~plan for way in ways):
                continue
            taken = self._same_sites(plan) & ~plan
            fitting = [way for way in ways if not way & taken]
            if not fitting:
                return 0
            way = min(fitting, key=lambda way: bool(way & avoid))
            waiting |= way & ~plan & self.late
            plan |= way
        return plan

    def _same_sites(self, plan: Plan) -> int:
        sites = 0
        for number in bits(plan):
            sites |= self.at_site[self.points[number].site]
        return sites

    def not_met_together(self) -> Iterator[tuple[int, int]]:
        """Pairs that were tried by themselves, with the faults that lead to their sites, and were not met."""
        for plan, runs in self.of_plan.items():
            numbers = list(bits(plan)) if plan & self.late or plan.bit_count() == 2 else []
            for one, other in combinations(numbers, 2):
                pair = 1 << one | 1 << other
                if all(pair & ~outcome.met for outcome in runs) and self._is_own(pair, plan):
                    yield one, other

    def _is_own(self, pair: Plan, plan: Plan) -> bool:
        """Whether the plan has nothing but the pair and a way to its sites."""
        leads = plan & ~pair
        late = (self.points[number].site for number in bits(pair & self.late))
        return self.own_plan(pair) == plan or (leads > 0 and any(leads in self.ways[site] for site in late))

    def never_met(self) -> int:
        """The points that were not met in any trial, not even in one of their own."""
        met = tried = 0
        for plan, runs in self.of_plan.items():
            for outcome in runs:
                met |= outcome.met
            for number in bits(plan):
                if plan == self.own_plan(1 << number):
                    tried |= 1 << number
        return tried & ~met

    def never_judged(self) -> int:
        """The points whose own trials judged no rule, so that further ones are not worth their cost."""
        silent = 0
        for plan, runs in self.of_plan.items():
            if plan.bit_count() == 1 and len(runs) >= len(self.held) and not any(one.judged for one in runs):
                silent |= plan
        return silent & ~self.held[0]

    def count(self, plan: Plan, failure: str) -> tuple[int, int]:
        """How often the plan itself failed like that, of how many runs."""
        runs = self.of_plan.get(plan, ())
        return sum(failure in outcome.failures for outcome in runs), len(runs)

    def passes(self, plan: Plan, failure: str) -> int:
        """Trials that met all of the plan, or were of just this plan, and did not fail like that."""
        return sum(failure not in one.failures and (not plan & ~one.met or plan == one.plan) for one in self.outcomes)

    def failed(self, plan: Plan, failure: str) -> bool:
        """Whether the plan itself fails like that."""
        return self.count(plan, failure)[0] >= (STEP_FAILS if self.noisy else 1)

    def passed(self, plan: Plan, failure: str) -> bool:
        """Whether the plan does not fail like that, as far as its own trials and those of larger plans say."""
        failed, runs = self.count(plan, failure)
        if not self.noisy:
            return not failed and (runs > 0 or self.passes(plan, failure) > 0)
        if failed >= STEP_FAILS:
            return False
        if runs - failed >= (STEP_RUNS - 1 if failed else STEP_PASSES):
            return True
        # Larger plans that passed count as well, but only if hardly any failed: failures may be due to other faults.
        passes = self.passes(plan, failure)
        failures = sum(failure in one.failures and not plan & ~one.met for one in self.outcomes)
        return passes >= STEP_PASSES and failures * STEP_RUNS <= passes


class Closed:
    """What needs no more trials: sets that fail, points that are never met, and pairs that cannot be met together."""

    def __init__(self, trials: Trials, failing: Sequence[tuple[Plan, str]]) -> None:
        self._trials = trials
        self.failing_alone = 0
        self.fails_with: dict[int, int] = {}
        """By point: the points that fail together with it."""
        self.larger: list[Plan] = []
        self.never_met = trials.never_met()
        self.never_judged = trials.never_judged()
        self.apart: dict[int, int] = {}
        """By point: the points that cannot be met together with it."""
        for points, _ in failing:
            self._forbid(points)
        for number in [plan.bit_length() - 1 for plan in trials.of_plan if plan.bit_count() == 1]:
            cut = trials.cuts_off(number)
            self.apart[number] = self.apart.get(number, 0) | cut
            for other in bits(cut):
                self.apart[other] = self.apart.get(other, 0) | 1 << number
        for one, other in trials.not_met_together():
            self.apart[one] = self.apart.get(one, 0) | 1 << other
            self.apart[other] = self.apart.get(other, 0) | 1 << one

    def _forbid(self, points: Plan) -> None:
        """No plan may contain a set that is known to fail, or one of the same classes."""
        numbers = list(bits(points))
        alike = self._trials.alike
        if len(numbers) == 1:
            self.failing_alone |= alike[numbers[0]]
        elif len(numbers) == 2:
            for one, other in (numbers, numbers[::-1]):
                for number in bits(alike[one]):
                    self.fails_with[number] = self.fails_with.get(number, 0) | alike[other]
        else:
            self.larger.append(points)

    def fails_next_to(self, plan: Plan) -> int:
        """The points that fail by themselves, or with a point of the plan."""
        failing = self.failing_alone
        for number in bits(plan):
            failing |= self.fails_with.get(number, 0)
        return failing

    def point_state(self, number: int) -> PointState:
        if self.failing_alone >> number & 1:
            return "failed"
        if self._trials.held[0] >> number & 1:
            return "held"
        return "infeasible" if self.never_met >> number & 1 else "open"

    def coverage(self) -> Coverage:
        """How many points and pairs are in each state."""
        trials = self._trials
        everything = (1 << len(trials.points)) - 1
        failed, held = self.failing_alone, trials.held[0] & ~self.failing_alone
        infeasible = self.never_met & ~failed & ~held
        counts = [mask.bit_count() for mask in (held, failed, infeasible, everything & ~failed & ~held & ~infeasible)]
        pairs = [0] * 5
        for number, point in enumerate(trials.points):
            elsewhere = everything & ~trials.at_site[point.site]
            lone = failed >> number & 1
            bad = elsewhere if lone else elsewhere & (failed | self.fails_with.get(number, 0))
            good = (trials.held_alike[number] | trials.held_with[0][number]) & elsewhere & ~bad
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
