"""Finds the plans that cover the most open points and pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.hunt.classes import FailingSets
from holdfast.hunt.closed import Closed
from holdfast.hunt.evidence import Trials
from holdfast.hunt.outcomes import Plan, Portion, list_bits

PASSES = 3
"""How often each site of a plan may change its point."""
STALE = 0.5
"""What an open pair is worth of which a neighbour on the ladder held: neighbours are often treated alike."""
SIMILAR, NOISY_SIMILAR = 0.05, 0.3
"""What an open pair is worth if points after which the agent did the same held together; with noise, once is little."""
FIRST_MEETING = 3.0
"""What meeting a point for the first time is worth, in pairs: it also shows its class and whether it ends trials."""
WORTH_A_TRIAL = 0.01
"""Expected coverage below which a plan is not tried."""
LARGEST_PLAN = 8
GROUP = 0.7
"""Faults of a plan times the chance that one of them fails by itself. About half of such plans fail: of those a trial
says most (ln 2, from group testing). With larger ones a fragile agent fails always, and every trial needs a shrink."""
PRIOR_FAILS, PRIOR_POINTS = 0.5, 10
"""The assumed number of failing points among so many, before any trial."""
MOST_POINTS = 400
"""Points that are weighed in one round, so that planning stays quick with thousands of call sites."""


class OpenWork:
    """The open points and pairs at the start of a round."""

    def __init__(
        self,
        trials: Trials,
        closed: Closed,
        guess: FailingSets,
        suspects: Iterable[Plan],
        own: Portion,
        *,
        order: int,
        level: int,
        left_out: int = 0,
    ) -> None:
        """`guess`: the sets that look like known causes; `suspects`: those that a shrink is looking at; `own`: what
        this shard of the hunt covers; `left_out`: points that are not tried now.
        """
        self._own = own
        self._left_out = left_out
        self._guess = guess
        self.trials = trials
        self._closed = closed
        self._suspects = list(suspects)
        self._order = order
        self._level = level
        self._similar = NOISY_SIMILAR if trials.noisy else SIMILAR
        self._survival: dict[int, float] = {}
        failing, held = closed.failing.single, trials.held[0] & ~closed.failing.alone
        chance = (failing + PRIOR_FAILS) / (failing + held.bit_count() + PRIOR_POINTS)
        self._largest = max(1, min(LARGEST_PLAN, round(GROUP / chance)))
        self.open = 0
        self.pairs: dict[int, int] = {}
        """By point: the points with which it forms an open pair."""
        self.unsure: list[int] = []
        """Points that seem to end the trial; only a trial of their own can say so."""

    def choose_plans(self, count: int, least: float = 0.0) -> list[Plan]:
        """Return plans that are expected to cover the most open points and pairs.

        Most faults let the agent continue, so a plan with a point at every site covers up to fifteen pairs in one
        trial. A fault that ends the trial (a cutter) hides those behind it. It is therefore worth most at the end of a
        plan, and the search learns from every trial which points are cutters.
        """
        # A greedy cover: each plan is the best for what the plans before it leave open. Two ideas made it worse, so
        # they are not here (bench_hunt.py, seeds 0 to 199, trials until all small causes are known, median and p90 of
        # worlds in which every mode is its own class; before: 47.5 and 100). Leaving out one plane in a third of the
        # plans: 60.5 and 124. One plan in five as a neighbour of a plan with a new trace shape: 56 and 116.
        self._list_open(guessing=True)
        self._set_masked_aside()
        plans = self._choose_singles()[:count]
        while len(plans) < count:
            plan, value = self._build_best_plan()
            if value <= (least or WORTH_A_TRIAL):
                break
            plan = self._build_own_plan(plan)
            if len(self.trials.of_plan.get(plan, ())) < len(self.trials.held):
                plans.append(plan)
            self.open &= ~plan
            for number in list_bits(plan):
                self.pairs[number] = self.pairs.get(number, 0) & ~plan
        return plans or ([] if least else list(self._settle())[:count])

    def _build_own_plan(self, points: Plan) -> Plan:
        """Return the smallest plan that is expected to meet the points."""
        return self.trials.ways.build_own_plan(points, self._find_conflicts(points))

    def _find_conflicts(self, plan: Plan) -> int:
        """Return the points that fail with the plan, or that mask one of it."""
        return self._closed.failing.find_conflicting(plan) | self.trials.find_masked(plan)

    def _choose_singles(self) -> list[Plan]:
        """Return single faults: of sets that lead to a retry only together, and those that others seem to mask."""
        # Which fault leads to a retry matters once faults at the retry are tried. Until then most ways get shorter.
        all_ways = () if self._left_out else self.trials.ways.to.values()
        ways = [ways[0] for ways in all_ways if ways and ways[0].bit_count() > 1]
        singles = dict.fromkeys(1 << number for way in ways for number in list_bits(way))
        masked = [1 << number for number in list_bits(self.open) if self.trials.missed_again[number]]
        plans = [*singles, *map(self._build_own_plan, masked)]
        return [plan for plan in dict.fromkeys(plans) if plan not in self.trials.of_plan]

    def _settle(self) -> Iterator[Plan]:
        """Yield plans that turn assumptions into knowledge: suspected cutters, points and pairs by themselves."""
        untried = [1 << number for number in self.unsure]
        # Trials of their own say whether faults that look like those of a cause belong to the same class.
        untried += [1 << number for number in list_bits(self._guess.points)]
        open_points = self._list_open()
        pairs = [1 << n | 1 << other for n, others in self.pairs.items() for other in list_bits(others) if other > n]
        # A fault may lead to a retry where another one of its site does: one trial of it decides many pairs.
        untried += [
            pair & ~self.trials.ways.late
            for pair in pairs
            if (pair & self.trials.ways.late).bit_count() == 1 and not self.trials.ways.complete(pair)
        ]
        singles = [1 << number for number in list_bits(open_points)]
        untried += map(self._build_own_plan, (*singles, *pairs))
        yield from (plan for plan in dict.fromkeys(untried) if plan not in self.trials.of_plan)

    def _list_open(self, *, guessing: bool = False) -> int:
        """List what is open, except what a shrink is looking at; the open points."""
        trials, level = self.trials, self._level
        usable = (1 << len(trials.points)) - 1 & ~self._closed.failing.alone
        usable &= ~self._closed.never_met & ~self._closed.never_judged & ~self._left_out
        if guessing:
            usable &= ~self._guess.alone
        self.open = usable & ~trials.held[level] & self._own.points
        for points in self._suspects:
            if points & points - 1 == 0:
                self.open &= ~points
        self.pairs = {}
        for number in self._weigh_points(usable):
            self.pairs[number] = self._find_open_pairs(number, usable, guessing) if self._order > 1 else 0
        weighed = sum(1 << number for number in self.pairs)
        for number in self.pairs:
            self.pairs[number] &= weighed
        self._survival = {number: trials.estimate_survival(number) for number in self.pairs}
        self._set_cutters_aside()
        return self.open & weighed

    def _weigh_points(self, usable: int) -> list[int]:
        numbers = list(list_bits(usable))
        if len(numbers) <= MOST_POINTS:
            return numbers
        points, held = self.trials.points, self.trials.held[self._level]
        return sorted(numbers, key=lambda number: (held >> number & 1, -points[number].weight, number))[:MOST_POINTS]

    def _find_open_pairs(self, number: int, usable: int, guessing: bool) -> int:
        trials = self.trials
        closed = trials.classes.held_with[number] if self._level == 0 else trials.held_with[self._level][number]
        closed |= trials.at_site[trials.points[number].site]
        closed |= self._closed.apart.get(number, 0) | self._closed.failing.together.get(number, 0)
        if guessing:
            closed |= self._guess.together.get(number, 0)
        for points in self._suspects:
            if points >> number & 1:
                closed |= points
        return usable & ~closed & self._own.find_partners(number)

    def _set_cutters_aside(self) -> None:
        """Leave out, for now, pairs of a point that seems to end the trial with points behind it."""
        trials = self.trials
        later, later_than = 0, {}
        for site in sorted(trials.at_site, reverse=True):
            later_than[site] = later
            later |= trials.at_site[site]
        cutters = dict.fromkeys(trials.at_site, 0)
        for number in self.pairs if not trials.noisy else ():
            site = trials.points[number].site
            if trials.ended_by[number] and not trials.went_on[number] and self.pairs[number] & later_than[site]:
                self.unsure.append(number)
                self.pairs[number] &= ~later_than[site]
                cutters[site] |= 1 << number
        earlier, earlier_than = 0, {}
        for site in sorted(cutters):
            earlier_than[site] = earlier
            earlier |= cutters[site]
        for number in self.pairs:
            self.pairs[number] &= ~earlier_than[trials.points[number].site]

    def _set_masked_aside(self) -> None:
        """Leave out pairs of which one point seems to mask the other: trials of the pairs alone decide that."""
        for number in self.pairs:
            self.pairs[number] &= ~self.trials.find_masked(1 << number)

    def _group_by_site(self) -> dict[int, list[int]]:
        """Return, by site, the points that are open or have open pairs."""
        by_site: dict[int, list[int]] = {}
        for number, others in self.pairs.items():
            if others or self.open >> number & 1:
                by_site.setdefault(self.trials.points[number].site, []).append(number)
        return dict(sorted(by_site.items()))

    def _count_open_pairs(self, number: int) -> float:
        old = (self.pairs[number] & self.trials.similar.held_with[number]).bit_count()
        pairs = self.pairs[number].bit_count() - (1 - self._similar) * old
        return (pairs + (self.open >> number & 1)) * self.trials.points[number].weight

    def _build_best_plan(self) -> tuple[Plan, float]:
        """Return a plan by coordinate ascent: each site in turn takes the point that is worth most next to the
        others.
        """
        # The best plan of all would need a look at every combination, 9^6 at six sites of eight modes. Improving one
        # site at a time looks at 48 in each pass, and two or three passes are enough: later ones gain less than 2 %.
        sites = self._group_by_site()
        seeds = {site: max(numbers, key=lambda n: (self._count_open_pairs(n), -n)) for site, numbers in sites.items()}
        chosen: dict[int, int] = {}
        total = 0.0
        for turn in range(PASSES):
            last = total
            order = sites if turn else sorted(sites, key=lambda site: (-self._count_open_pairs(seeds[site]), site))
            for site in order:
                chosen.pop(site, None)
                if len(chosen) >= self._largest:
                    continue
                number, total = self._choose_best_at(site, sites[site], chosen)
                if number < 0 and not chosen and self._can_add(seeds[site], 0):
                    number = seeds[site]
                if number >= 0:
                    chosen[site] = number
            if total <= 1.02 * last:
                break
        plan = sum(1 << number for number in chosen.values())
        return plan, total

    def _choose_best_at(self, site: int, numbers: list[int], chosen: dict[int, int]) -> tuple[int, float]:
        """Return the point of the site that adds most to the others, or -1; and the expected coverage of the plan with
        it.
        """
        pairs, near, similar = self.pairs, self.trials.near, self.trials.similar.held_with
        sites = sorted(chosen)
        plan = before = 0
        value, alive = 0.0, 1.0
        rest, chance = 0.0, 1.0
        later: list[tuple[int, float]] = []
        for other in sites:
            number = chosen[other]
            worth = self._estimate_gain(number, plan)
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
            row = pairs[number]
            old, seen = near[number], similar[number]
            behind = rest + sum(
                c * (self._similar if seen >> m & 1 else STALE if old >> m & 1 else 1.0)
                for m, c in later
                if row >> m & 1
            )
            worth = self._estimate_gain(number, before) + self._survival[number] * behind
            if worth > most + 1e-9 and self._can_add(number, plan):
                best, most = number, worth
        return best, value + alive * most

    def _estimate_gain(self, number: int, before: int) -> float:
        """Estimate the coverage gained by meeting the point after those before it."""
        pairs = self.pairs[number] & before
        if not pairs:
            return (self.open >> number & 1) * FIRST_MEETING * self.trials.points[number].weight
        held_pairs = pairs & self.trials.similar.held_with[number]
        stale = (pairs & self.trials.near[number] & ~held_pairs).bit_count()
        value = pairs.bit_count() - (1 - STALE) * stale - (1 - self._similar) * held_pairs.bit_count()
        return (value + FIRST_MEETING * (self.open >> number & 1)) * self.trials.points[number].weight

    def _can_add(self, number: int, plan: Plan) -> bool:
        """Whether the plan may contain the point: it must not be known to fail, and the agent must get to the site."""
        with_it = plan | 1 << number
        if with_it & self.trials.ways.late:
            with_it = self.trials.ways.complete(with_it, self._find_conflicts(with_it))
        added = with_it & ~plan
        return bool(with_it) and not any(sets.contains(with_it, added) for sets in (self._closed.failing, self._guess))
