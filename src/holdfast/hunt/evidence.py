"""The results of a hunt's trials, as sets of points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from holdfast.hunt.classes import Classes
from holdfast.hunt.outcomes import Failure, Plan, PlanOutcome, Point, list_bits
from holdfast.hunt.ways import Ways

GOES_ON = 0.7
"""How often an agent continues after a fault about which nothing is known yet."""
PRIOR, NOISY_PRIOR = 0.1, 2.0
"""How many observations that assumption is worth. Without noise, one look says nearly everything."""
STEP_FAILS, STEP_RUNS, STEP_PASSES = 2, 6, 4
"""With noise: a plan fails if 2 of at most 6 runs fail. Four passes without a failure settle it earlier."""
LEVELS = 3
"""With noise: in how many trials a pair must hold before it is no longer worth a trial."""


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
        self.classes = Classes()
        """Points whose own trials looked the same."""
        self.similar = Classes()
        """Points after which the agent did the same, whatever other faults there were: a guess that orders trials."""
        self.near: list[int] = []
        """By point: points that held with one of its ladder neighbours, and neighbours of those that it held with."""
        self.neighbours: list[int] = []
        """By point: the next weaker and the next stronger point of its site."""
        self.ended_by: list[int] = []
        """By point: trials in which it was met and the agent reached no later site."""
        self.went_on: list[int] = []
        self.ladders: dict[tuple[int, bool], list[int]] = {}
        """By site, and whether its call does its work: the points, from weak to strong."""
        self.at_site: dict[int, int] = {}
        self.sites = 0
        self.ways = Ways(self.points, self.at_site)
        self.missed: list[int] = []
        """By point: the points one of which was met and the other not, although its site was reached."""
        self.missed_again: list[int] = []
        """The same, in at least two trials: one of them seems to mask the other."""
        self._compared, self._same = 2.0, 1.0
        """Neighbours on a ladder after which the agent's steps are known, and those where they were the same."""
        self.unlabelled = 0
        """The points of which no trial says what the agent does after them."""
        self._common = 0
        self._outages: dict[int, int] = {}
        """By outage: its points, one for each call that it can begin at."""
        self._met = 0
        """The points that were met in any trial."""
        self.add_points(points)

    def add_points(self, points: Sequence[Point]) -> None:
        late = {point.site for point in points} - self.at_site.keys() if self.points else ()
        for number, point in enumerate(points, len(self.points)):
            self.at_site[point.site] = self.at_site.get(point.site, 0) | 1 << number
            self.ladders.setdefault((point.site, point.works), []).append(number)
            self.sites |= 1 << point.site
            self._common |= point.common << number
            if point.outage:
                self._outages[point.outage] = self._outages.get(point.outage, 0) | 1 << number
        self.points += points
        for classes in (self.classes, self.similar):
            classes.add_points(len(points))
        self.unlabelled |= ((1 << len(points)) - 1) << len(self.points) - len(points)
        rows = (
            *self.held_with,
            self.near,
            self.neighbours,
            self.ended_by,
            self.went_on,
            self.missed,
            self.missed_again,
        )
        for row in rows:
            row += [0] * len(points)
        self.ways.expect(late)
        for site, works in {(point.site, point.works) for point in points}:
            if site in self.ways.to:
                self.ways.expect([site])
            ladder = self.ladders[site, works]
            ladder.sort(key=lambda number: self.points[number].rung)
            for weaker, stronger in pairwise(ladder):
                self.neighbours[weaker] |= 1 << stronger
                self.neighbours[stronger] |= 1 << weaker

    def add(self, outcome: PlanOutcome) -> None:
        self.outcomes.append(outcome)
        self.of_plan.setdefault(outcome.plan, []).append(outcome)
        self._met |= 0 if outcome.broken else outcome.met
        if not outcome.plan:
            self.ways.expect(list_bits(self.sites & ~outcome.reached))
        self.ways.add(outcome)
        self._add_missed(outcome)
        for number in list_bits(outcome.met):
            site = self.points[number].site
            if outcome.reached >> site + 1:
                self.went_on[number] += 1
            elif self.sites >> site + 1:
                self.ended_by[number] += 1
        self._label(outcome)
        if outcome.plan == outcome.met and outcome.plan.bit_count() == 1:
            self._classify(outcome)
        if outcome.judged and not outcome.failures:
            self._hold(outcome.met)

    def build_broken(self, plan: Plan) -> PlanOutcome:
        """Return the outcome of a plan that Holdfast could not observe: it says nothing about points and rules."""
        usual_sites = sum(1 << site for site in list_bits(self.sites) if site not in self.ways.to)
        return PlanOutcome(plan, plan, usual_sites, judged=False, broken=True)

    def _add_missed(self, outcome: PlanOutcome) -> None:
        unmet = [n for n in list_bits(outcome.plan & ~outcome.met) if outcome.reached >> self.points[n].site & 1]
        for number in unmet:
            self.missed_again[number] |= self.missed[number] & outcome.met
            self.missed[number] |= outcome.met
            for other in list_bits(outcome.met):
                self.missed_again[other] |= self.missed[other] & 1 << number
                self.missed[other] |= 1 << number

    def find_masked(self, plan: Plan) -> int:
        """Return the points that seem to mask one of the plan, or to be masked by one."""
        masked = 0
        for number in list_bits(plan):
            masked |= self.missed_again[number] & ~self.held_with[0][number]
        return masked

    def _hold(self, met: int) -> None:
        """Cross off the points and pairs that were met; what held before moves up a level."""
        rising = met
        for level, held in enumerate(self.held):
            self.held[level], rising = held | rising, held & rising
        near = 0
        for number in list_bits(met):
            rising = met & ~(1 << number)
            for row in self.held_with:
                row[number], rising = row[number] | rising, row[number] & rising
            neighbours = self.neighbours[number] & self.unlabelled
            near |= neighbours
            for other in list_bits(neighbours):
                self.near[other] |= met
        for number in list_bits(met & self.unlabelled):
            self.near[number] |= near
        self.classes.hold(met)
        self.similar.hold(met)

    def _classify(self, outcome: PlanOutcome) -> None:
        """Join the point with those of its site whose own trials looked the same."""
        number = outcome.plan.bit_length() - 1
        if not self.points[number].separate and outcome.shape:
            self.classes.join(number, (self.points[number].site, outcome.shape, outcome.failures, outcome.reached))

    def _label(self, outcome: PlanOutcome) -> None:
        """Note what the agent did after each fault that is met for the first time."""
        for number, step in zip(list_bits(outcome.met), outcome.steps, strict=False):
            if not self.unlabelled >> number & 1:
                continue
            self.unlabelled ^= 1 << number
            if self.points[number].separate:
                continue
            self.similar.join(number, (self.points[number].site, step))
            for other in list_bits(self.neighbours[number] & ~self.unlabelled):
                self._compared += 1
                self._same += self.similar.of[number] >> other & 1
            # From now on this is a better guess than the neighbours on the ladder.
            self.near[number] = 0
            for row in range(len(self.near)):
                self.near[row] &= ~(1 << number)

    def list_lookalikes(self) -> list[int]:
        """Return, for each point, those that probably fail for the same reason, and may therefore wait.

        Faults for which there is public evidence never wait for other faults: people ask about exactly these. But an
        agent that does not survive an outage rarely does if it begins at another call, and tends to take its time.
        """
        outages = (self._outages.get(point.outage, 0) for point in self.points)
        return [
            1 << number | alike & ~self._common | outage
            for number, (alike, outage) in enumerate(zip(self.similar.of, outages, strict=True))
        ]

    def estimate_survival(self, number: int) -> float:
        """Return how likely the agent is to continue after this point; exact after a trial of its own, unless there is
        noise.
        """
        if not self.noisy and (alone := self.of_plan.get(1 << number)):
            return float(bool(alone[0].reached >> self.points[number].site + 1))
        prior = NOISY_PRIOR if self.noisy else PRIOR
        if self.unlabelled >> number & 1 and (known := self.neighbours[number] & ~self.unlabelled):
            # Neighbours on a ladder are often treated alike; how often, the points that were met so far say.
            like = self._same / self._compared
            rates = [self.estimate_survival(other) for other in list_bits(known)]
            return like * sum(rates) / len(rates) + (1 - like) * GOES_ON
        return (self.went_on[number] + prior * GOES_ON) / (self.went_on[number] + self.ended_by[number] + prior)

    def find_cut_off(self, number: int) -> int:
        """Return the points that no trial of this point alone reached: they cannot be met together with it."""
        alone = self.of_plan.get(1 << number, ())
        if not any(outcome.met for outcome in alone):
            return 0
        reached = 0
        for outcome in alone:
            reached |= outcome.reached
        if not self.sites & ~reached:
            return 0
        cut = sum(self.at_site[site] for site in list_bits(self.sites & ~reached))
        # To a retry or a fallback, another fault may lead: unless it is at the same site, or cut off itself.
        blocked = self.at_site[self.points[number].site] & ~(1 << number) | cut & ~self.ways.late
        for site in list_bits(self.sites & ~reached):
            if site in self.ways.to and not all(way & blocked for way in self.ways.to[site]):
                cut &= ~self.at_site[site]
        return cut

    def find_unmet_pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the pairs that were tried by themselves, with the faults that lead to their sites, and were not
        met.
        """
        for plan, runs in self.of_plan.items():
            numbers = list(list_bits(plan)) if plan & self.ways.late or plan.bit_count() == 2 else []
            for one, other in combinations(numbers, 2):
                pair = 1 << one | 1 << other
                if all(pair & ~outcome.met for outcome in runs) and self.ways.is_own(pair, plan):
                    yield one, other

    def find_never_met(self) -> int:
        """Return the points that were not met in any trial, not even in one of their own."""
        never = 0
        for number in list_bits((1 << len(self.points)) - 1 & ~self._met):
            own = self.ways.build_own_plan(1 << number)
            if any(not one.broken for one in self.of_plan.get(own, ())):
                never |= 1 << number
        return never

    def find_never_judged(self) -> int:
        """Return the points whose own trials judged no rule, so that further ones are not worth their cost."""
        silent = 0
        for number in self.list_alone():
            runs = self.of_plan[1 << number]
            if len(runs) >= len(self.held) and not any(one.judged for one in runs):
                silent |= 1 << number
        return silent & ~self.held[0]

    def list_alone(self) -> list[int]:
        """Return the points that have trials of their own."""
        return [number for number in range(len(self.points)) if 1 << number in self.of_plan]

    def count(self, plan: Plan, failure: Failure) -> tuple[int, int]:
        """Return how often the plan itself failed like that, and in how many runs that could tell."""
        runs = self.of_plan.get(plan, ())
        failed = sum(failure in outcome.failures for outcome in runs)
        return failed, failed + sum(outcome.passes(failure) for outcome in runs)

    def count_passes(self, plan: Plan, failure: Failure) -> int:
        """Count the trials of the plan, or of larger plans, that show that it does not fail like that."""
        return sum(one.clears(plan, failure) for one in self.outcomes)

    def has_failed(self, plan: Plan, failure: Failure) -> bool:
        """Whether the plan itself fails like that."""
        return self.count(plan, failure)[0] >= (STEP_FAILS if self.noisy else 1)

    def has_passed(self, plan: Plan, failure: Failure) -> bool:
        """Whether the plan does not fail like that, as far as its own trials and those of larger plans say."""
        failed, runs = self.count(plan, failure)
        if not self.noisy:
            return not failed and (runs > 0 or self.count_passes(plan, failure) > 0)
        if failed >= STEP_FAILS:
            return False
        if runs - failed >= (STEP_RUNS - 1 if failed else STEP_PASSES):
            return True
        # Larger plans that passed count as well, but only if hardly any failed: failures may be due to other faults.
        passes = self.count_passes(plan, failure)
        failures = sum(failure in one.failures and not plan & ~one.met for one in self.outcomes)
        return passes >= STEP_PASSES and failures * STEP_RUNS <= passes
