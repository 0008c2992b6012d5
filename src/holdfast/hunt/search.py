"""Search: which fault sets to try next, so that few trials find every small set that breaks a rule.

The search is a pure function of the outcomes it is given, in rounds: neither the number of workers nor the order in
which trials end changes what it tries. A hunt that was killed is resumed by giving it the stored outcomes again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from holdfast.hunt.evidence import Closed, Coverage, FaultCause, Plan, PlanOutcome, Point, PointState, Trials, bits
from holdfast.hunt.shrink import Shrinks, smaller

ROUND = 8
"""The most trials of one round. Fixed, so that the plans do not depend on the number of workers."""
PASSES = 3
"""How often each site of a plan may change its point."""
STALE = 0.5
"""What an open pair is worth of which a neighbour on the ladder held: neighbours are often treated alike."""
WORTH_A_TRIAL = 0.05
"""Expected coverage below which a plan is not tried."""
FIXED_RUNS, NOISY_FIXED_RUNS = 2, 3
"""How often a known cause must be met without a failure before it counts as fixed."""
AUDIT_RUNS = 3
"""Without noise: how often a cause, and each plan with one fault less, is run before the hunt ends."""
LARGEST_PLAN = 8
MOST_POINTS = 400
"""Points that are weighed in one round, so that planning stays quick with thousands of call sites."""


class OpenWork:
    """The open points and pairs at the start of a round."""

    def __init__(self, trials: Trials, closed: Closed, suspects: Iterable[Plan], order: int, level: int = 0) -> None:
        self.trials = trials
        self._closed = closed
        self._suspects = list(suspects)
        self._order = order
        self._level = level
        self._survival: dict[int, float] = {}
        self.open = 0
        self.pairs: dict[int, int] = {}
        """By point: the points with which it forms an open pair."""
        self.unsure: list[int] = []
        """Points that seem to end the trial; only a trial of their own can say so."""

    def plans(self, count: int) -> list[Plan]:
        """Plans that are expected to cover the most open points and pairs.

        Most faults let the agent continue, so a plan with a point at every site covers up to fifteen pairs in one
        trial. A fault that ends the trial (a cutter) hides those behind it. It is therefore worth most at the end of a
        plan, and the search learns from every trial which points are cutters.
        """
        self._survey()
        self._set_masked_aside()
        plans = self._singles_to_learn()[:count]
        while len(plans) < count:
            plan, value = self._best_plan()
            if value <= WORTH_A_TRIAL:
                break
            plan = self.trials.own_plan(plan, self._avoid(plan))
            if len(self.trials.of_plan.get(plan, ())) < len(self.trials.held):
                plans.append(plan)
            self.open &= ~plan
            for number in bits(plan):
                self.pairs[number] = self.pairs.get(number, 0) & ~plan
        return plans or list(self._settle())[:count]

    def _avoid(self, plan: Plan) -> int:
        return self._closed.fails_next_to(plan) | self.trials.masked(plan)

    def _singles_to_learn(self) -> list[Plan]:
        """Single faults, where only several together are known to lead to a retry, or that others seem to mask."""
        ways = [ways[0] for ways in self.trials.ways.values() if ways and ways[0].bit_count() > 1]
        singles = dict.fromkeys(1 << number for way in ways for number in bits(way))
        masked = [1 << number for number in bits(self.open) if self.trials.missed_again[number]]
        plans = [*singles, *(self.trials.own_plan(point, self._avoid(point)) for point in masked)]
        return [plan for plan in dict.fromkeys(plans) if plan not in self.trials.of_plan]

    def _settle(self) -> Iterator[Plan]:
        """Plans that turn assumptions into knowledge: suspected cutters, points and pairs by themselves."""
        untried = [1 << number for number in self.unsure]
        open_points = self._survey()
        pairs = [1 << n | 1 << other for n, others in self.pairs.items() for other in bits(others) if other > n]
        # A fault may lead to a retry where another one of its site does: one trial of it decides many pairs.
        untried += [
            pair & ~self.trials.late
            for pair in pairs
            if (pair & self.trials.late).bit_count() == 1 and not self.trials.with_ways(pair)
        ]
        singles = [1 << number for number in bits(open_points)]
        untried += [self.trials.own_plan(points, self._avoid(points)) for points in (*singles, *pairs)]
        yield from (plan for plan in dict.fromkeys(untried) if plan not in self.trials.of_plan)

    def _survey(self) -> int:
        """Lists what is open, except what a shrink is looking at; the open points."""
        trials, level = self.trials, self._level
        usable = (1 << len(trials.points)) - 1 & ~self._closed.failing_alone
        usable &= ~self._closed.never_met & ~self._closed.never_judged
        self.open = usable & ~trials.held[level]
        for points in self._suspects:
            if points & points - 1 == 0:
                self.open &= ~points
        self.pairs = {}
        for number in self._weighed(usable):
            self.pairs[number] = self._open_pairs(number, usable) if self._order > 1 else 0
        weighed = sum(1 << number for number in self.pairs)
        for number in self.pairs:
            self.pairs[number] &= weighed
        self._survival = {number: trials.survival(number) for number in self.pairs}
        self._set_cutters_aside()
        return self.open & weighed

    def _weighed(self, usable: int) -> list[int]:
        numbers = list(bits(usable))
        if len(numbers) <= MOST_POINTS:
            return numbers
        points, held = self.trials.points, self.trials.held[self._level]
        return sorted(numbers, key=lambda number: (held >> number & 1, -points[number].weight, number))[:MOST_POINTS]

    def _open_pairs(self, number: int, usable: int) -> int:
        trials = self.trials
        closed = trials.held_alike[number] if self._level == 0 else trials.held_with[self._level][number]
        closed |= trials.at_site[trials.points[number].site]
        closed |= self._closed.apart.get(number, 0) | self._closed.fails_with.get(number, 0)
        for points in self._suspects:
            if points >> number & 1:
                closed |= points
        return usable & ~closed

    def _set_cutters_aside(self) -> None:
        """Leaves out, for now, pairs of a point that seems to end the trial with points behind it."""
        trials = self.trials
        later, later_than = 0, {}
        for site in sorted(trials.at_site, reverse=True):
            later_than[site] = later
            later |= trials.at_site[site]
        for number, others in self.pairs.items():
            if trials.noisy or trials.went_on[number] or not trials.ended_by[number]:
                continue
            if behind := others & later_than[trials.points[number].site]:
                self.unsure.append(number)
                self.pairs[number] &= ~behind
                for other in bits(behind):
                    self.pairs[other] &= ~(1 << number)

    def _set_masked_aside(self) -> None:
        """Leaves out pairs of which one point seems to mask the other: trials of the pairs alone decide that."""
        for number in self.pairs:
            self.pairs[number] &= ~self.trials.masked(1 << number)

    def _by_site(self) -> dict[int, list[int]]:
        """By site: the points that are open or have open pairs."""
        by_site: dict[int, list[int]] = {}
        for number, others in self.pairs.items():
            if others or self.open >> number & 1:
                by_site.setdefault(self.trials.points[number].site, []).append(number)
        return dict(sorted(by_site.items()))

    def _degree(self, number: int) -> float:
        return (self.pairs[number].bit_count() + (self.open >> number & 1)) * self.trials.points[number].weight

    def _best_plan(self) -> tuple[Plan, float]:
        """A plan by coordinate ascent: each site in turn takes the point that is worth most next to the others."""
        sites = self._by_site()
        seeds = {site: max(numbers, key=lambda n: (self._degree(n), -n)) for site, numbers in sites.items()}
        chosen: dict[int, int] = {}
        total = 0.0
        for turn in range(PASSES):
            last = total
            order = sites if turn else sorted(sites, key=lambda site: (-self._degree(seeds[site]), site))
            for site in order:
                chosen.pop(site, None)
                if len(chosen) == LARGEST_PLAN:
                    continue
                number, total = self._best_at(site, sites[site], chosen)
                if number < 0 and not chosen and self._fits(seeds[site], 0):
                    number = seeds[site]
                if number >= 0:
                    chosen[site] = number
            if total <= 1.02 * last:
                break
        plan = sum(1 << number for number in chosen.values())
        return plan, total

    def _best_at(self, site: int, numbers: list[int], chosen: dict[int, int]) -> tuple[int, float]:
        """The point of the site that adds most to the others, or -1; and the expected coverage of the plan with it."""
        pairs, near = self.pairs, self.trials.near
        sites = sorted(chosen)
        plan = before = 0
        value, alive = 0.0, 1.0
        rest, chance = 0.0, 1.0
        later: list[tuple[int, float]] = []
        for other in sites:
            number = chosen[other]
            worth = self._worth(number, plan)
            plan |= 1 << number
            if other < site:
                value += alive * worth
                alive *= self._survival[number]
                before = plan
            else:
                rest += chance * worth
                later.append((number, chance))
                chance *= self._survival[number]
        best, most = -1, rest
        for number in numbers:
            if not self._fits(number, plan):
                continue
            row = pairs[number]
            behind = rest + sum(c * (STALE if near[number] >> m & 1 else 1.0) for m, c in later if row >> m & 1)
            worth = self._worth(number, before) + self._survival[number] * behind
            if worth > most + 1e-9:
                best, most = number, worth
        return best, value + alive * most

    def _worth(self, number: int, before: int) -> float:
        """What meeting the point after those before it would cover."""
        pairs = self.pairs[number] & before
        stale = (pairs & self.trials.near[number]).bit_count()
        return (pairs.bit_count() - (1 - STALE) * stale + (self.open >> number & 1)) * self.trials.points[number].weight

    def _fits(self, number: int, plan: Plan) -> bool:
        """Whether the plan may contain the point: it must not be known to fail, and the agent must get to the site."""
        closed, with_it = self._closed, plan | 1 << number
        if with_it & self.trials.late:
            with_it = self.trials.with_ways(with_it, self._avoid(with_it))
        added = with_it & ~plan
        return (
            bool(with_it)
            and not added & closed.failing_alone
            and not any(closed.fails_with.get(one, 0) & with_it for one in bits(added))
            and not any(not points & ~with_it for points in closed.larger)
        )


class Search:
    """Decides what to try next."""

    def __init__(
        self,
        points: Sequence[Point],
        *,
        noisy: bool = False,
        order: int = 2,
        round_size: int = ROUND,
        known: Sequence[Plan] = (),
        only: str | None = None,
    ) -> None:
        """`order`: 1 covers points, 2 pairs, 0 nothing. `known`: plans to try first. `only`: the failure to shrink."""
        self.trials = Trials(points, noisy=noisy)
        self.gave_up: list[PlanOutcome] = []
        """The smallest fault sets under which the agent produced neither an answer nor a write."""
        self._only = only
        self._shrinks = Shrinks(self.trials, only)
        self._known = list(dict.fromkeys(known))
        self._order = order
        self._round = round_size

    @property
    def points(self) -> list[Point]:
        return self.trials.points

    @property
    def causes(self) -> list[FaultCause]:
        """The minimal plans that fail; with noise, those that fail significantly more often than calm."""
        return [self._shrinks.counted(one.cause, one.failure) for one in self._shrinks.significant()]

    @property
    def flaky(self) -> list[FaultCause]:
        """What failed and did not confirm, or was not confirmed before the budget ended."""
        proven = self._shrinks.significant()
        doubtful = [(one.cause, one.failure) for one in self._shrinks.reported if one not in proven]
        flaky = dict.fromkeys([*self._shrinks.unconfirmed, *doubtful, *self._shrinks.unfinished()])
        return [self._shrinks.counted_anywhere(*one) for one in flaky]

    @property
    def fixed(self) -> list[Plan]:
        """Known plans that no longer fail although all of their faults were met."""
        runs = fixed_runs(self.trials.noisy)
        return [plan for plan in self._known if not self._fails(plan) and self._met_runs(plan) >= runs]

    @property
    def undecided(self) -> list[Plan]:
        """Known plans that did not fail, but were not met, or not judged, often enough to count as fixed."""
        runs = fixed_runs(self.trials.noisy)
        return [plan for plan in self._known if not self._fails(plan) and self._met_runs(plan) < runs]

    def _fails(self, plan: Plan) -> bool:
        return any(outcome.failures for outcome in self.trials.of_plan.get(plan, ()))

    def _met_runs(self, plan: Plan) -> int:
        return sum(one.judged and not plan & ~one.met for one in self.trials.of_plan.get(plan, ()))

    @property
    def shrink_steps(self) -> dict[tuple[Plan, str], list[tuple[Plan, int, int]]]:
        """By the points and the failure of a cause: the plans that led to it, with their failed runs and their runs."""
        return {
            (one.cause, one.failure): [
                (plan, *self.trials.count(plan, one.failure))
                for plan in [*(plan for plan in one.plans if plan != one.cause), one.cause]
                if plan in self.trials.of_plan
            ]
            for one in self._shrinks.reported
        }

    def state_of(self, number: int) -> PointState:
        """Whether the point held, failed, cannot be met, or is open."""
        return Closed(self.trials, self._shrinks.failing).point_state(number)

    def coverage(self) -> Coverage:
        """What the trials say about every point and every pair of points at different sites."""
        return Closed(self.trials, self._shrinks.failing).coverage()

    def add_points(self, points: Sequence[Point]) -> None:
        """Adds points at sites that were first reached under a fault; they are numbered after the others."""
        self.trials.add_points(points)

    def next(self, outcomes: Sequence[PlanOutcome]) -> list[Plan]:
        """Takes the outcomes of the last round, in any order, and returns the next round; an empty one ends the hunt.

        A plan that occurs twice is to be run twice. Plan 0 is a calm trial.
        """
        for outcome in sorted(outcomes, key=lambda one: (one.plan, one.met, one.failures, one.shape)):
            self.trials.add(outcome)
            self._shrinks.add(outcome)
            if outcome.gave_up and not any(not one.met & ~outcome.met for one in self.gave_up):
                self.gave_up = [one for one in self.gave_up if outcome.met & ~one.met] + [outcome]
        # Two runs of one plan that ended differently: from now on no single run proves anything.
        if any(_result(one) != _result(self.trials.of_plan[one.plan][0]) for one in outcomes):
            self.expect_noise()
        most = fixed_runs(self.trials.noisy)
        if known := [plan for plan in self.undecided if len(self.trials.of_plan.get(plan, ())) < most]:
            return known[: self._round]
        return self._shrinks.advance()[: self._round] or self._cover() or self._audit()[: self._round]

    def expect_noise(self) -> None:
        """Looks at all trials so far again, as those of an agent that is not deterministic."""
        if self.trials.noisy:
            return
        before, self.trials = self.trials, Trials(self.trials.points, noisy=True)
        self.trials.expect_late(before.ways)
        self._shrinks = Shrinks(self.trials, self._only)
        for outcome in before.outcomes:
            self.trials.add(outcome)
            self._shrinks.add(outcome)

    def _audit(self) -> list[Plan]:
        """Repeats what decides about a cause: if one of them ends differently, the agent is not deterministic."""
        causes = [] if self.trials.noisy else [one.cause for one in self._shrinks.reported]
        plans = [plan for cause in causes for plan in [cause, *smaller(cause)]]
        return [plan for plan in dict.fromkeys(plans) if len(self.trials.of_plan.get(plan, ())) < AUDIT_RUNS]

    def _cover(self) -> list[Plan]:
        """Plans that cover what is open. In each round, one trial looks for a weaker form of a known cause."""
        weaker = self._shrinks.advance_weakening()[: self._round]
        if self._order < 1:
            return weaker
        suspects = [one.points for one in self._shrinks.under_way]
        closed = Closed(self.trials, self._shrinks.failing)
        for level in range(len(self.trials.held)):
            work = OpenWork(self.trials, closed, suspects, self._order, level)
            plans = list(dict.fromkeys([*weaker, *work.plans(self._round - len(weaker))]))
            if plans:
                return plans
        return []


def fixed_runs(noisy: bool) -> int:
    """How often a known cause must be met without a failure before it counts as fixed."""
    return NOISY_FIXED_RUNS if noisy else FIXED_RUNS


def _result(outcome: PlanOutcome) -> tuple[int, tuple[str, ...]]:
    """What a deterministic agent repeats exactly."""
    return outcome.met, outcome.failures


class Shrink:
    """Shrinks one plan that failed; `next` works like that of a search."""

    def __init__(self, points: Sequence[Point], plan: Plan, failure: str, *, noisy: bool = False) -> None:
        self.search = Search(points, noisy=noisy, order=0, known=[plan], only=failure)

    @property
    def causes(self) -> list[FaultCause]:
        return self.search.causes

    def next(self, outcomes: Sequence[PlanOutcome]) -> list[Plan]:
        """Takes the outcomes of the last round and returns the next one, empty when the plan is as small as it gets."""
        return self.search.next(outcomes)
