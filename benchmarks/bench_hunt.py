"""How many trials a hunt needs on generated agents, next to the best random search, and what it gets wrong.

`python benchmarks/bench_hunt.py --held-out` measures the seeds that were set aside while the search was written.
Seeds 0 to 999 are for development; 1000 to 1399, 2000 to 2999, 5000 to 5199 and 6000 to 6199 were set aside, and are
spent.

In worlds with classes, on seeds 0 to 99, the search needs a median of 30 trials. Told all classes from the start it
needs 30 as well, and told which points end trials, too, 26.5. To learn classes sooner gains nothing. To guess whether a
point ends trials from the nearest known points of its ladder, and not only from its neighbours, gains 2 %.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from hunt_worlds import Kind, World, generate, worlds  # after the path
from measure import limited, row

from holdfast.hunt.outcomes import Failure, Plan, PlanOutcome, list_bits
from holdfast.hunt.search import Search

BUDGET = 300
RANDOM_BUDGET = 3000
"""A random search that finds nothing for so long counts as this many trials."""
SIZES = range(2, 7)
"""Numbers of faults in the plans of random searches; the best one counts."""
RESAMPLES = 400


@dataclass(frozen=True)
class WorldHunt:
    """One hunt on one world."""

    world: World
    search: Search
    trials: int
    known_after: int | None
    """Trials until every small cause was known."""
    rounds: list[list[Plan]]
    planning_s: float

    def wrong(self) -> int:
        """Causes that were not planted, or that are not the weakest of their class."""
        planted = {self.world.weakest(cause) for cause in self.world.causes}
        return sum(one.points not in planted for one in self.search.causes)

    def unmet(self) -> int:
        """Causes with a fault that was not met when they failed."""
        return sum(
            any(one.failure in run.failures and one.points & ~run.met for run in self.search.trials.of_plan[one.points])
            for one in self.search.causes
        )

    def recall(self) -> list[bool]:
        kinds = {self.world.kinds(one.points) for one in self.search.causes}
        return [cause in kinds for cause in sorted(self.world.small_causes(), key=sorted)]


def hunt(
    world: World, *, noisy: bool = False, budget: int = BUDGET, shuffled: bool = False, order: int = 2
) -> WorldHunt:
    search = Search(world.points(), noisy=noisy, order=order)
    draw, arrival = random.Random(world.seed * 7 + 1), random.Random(world.seed)
    wanted, trials, known_after, spent = world.small_causes(), 0, None, 0.0
    rounds: list[list[Plan]] = []
    outcomes: list[PlanOutcome] = []
    while True:
        begun = time.process_time()
        plans = search.next(outcomes)[: budget - trials]
        spent += time.process_time() - begun
        if known_after is None and wanted <= {world.kinds(one.points) for one in search.causes}:
            known_after = trials
        if not plans:
            return WorldHunt(world, search, trials, known_after, rounds, spent)
        rounds.append(plans)
        trials += len(plans)
        outcomes = [world.run(plan, draw) for plan in plans]
        if shuffled:
            arrival.shuffle(outcomes)


class RandomSearch:
    """Plans of one size at random; a plan that fails is shrunk fault by fault."""

    def __init__(self, world: World, size: int, *, weakens: bool) -> None:
        self.world, self.size, self.weakens = world, size, weakens
        self.draw = random.Random(world.seed * 11 + size)
        self.trials = 0
        self.causes: set[tuple[Plan, Failure]] = set()

    def run(self) -> int:
        """Trials until every small cause is known."""
        wanted = self.world.small_causes()
        sites, modes = len(self.world.classes), self.world.modes
        while self.trials < RANDOM_BUDGET:
            chosen = self.draw.sample(range(sites), self.size)
            outcome = self.trial(sum(1 << site * modes + self.draw.randrange(modes) for site in chosen))
            for failure in outcome.failures:
                if not any(of == failure and not cause & ~outcome.met for cause, of in self.causes):
                    self.shrink(outcome.met, failure, wanted)
            if self.knows(wanted):
                return self.trials
        return RANDOM_BUDGET

    def knows(self, wanted: set[frozenset[Kind]]) -> bool:
        return wanted <= {self.world.kinds(cause) for cause, _ in self.causes}

    def trial(self, plan: Plan) -> PlanOutcome:
        self.trials += 1
        return self.world.run(plan, self.draw)

    def shrink(self, points: Plan, failure: Failure, wanted: set[frozenset[Kind]]) -> None:
        necessary = 0
        while left := [number for number in list_bits(points & ~necessary) if points & points - 1]:
            rest = points & ~(1 << left[0])
            if failure in self.trial(rest).failures:
                points = rest
            else:
                necessary |= 1 << left[0]
        self.causes.add((points, failure))
        for number in list(list_bits(points)) if self.weakens and not self.knows(wanted) else []:
            low, high = number - number % self.world.modes, number
            while low < high:
                middle = (low + high) // 2
                fails = failure in self.trial(points & ~(1 << number) | 1 << middle).failures
                low, high = (low, middle) if fails else (middle + 1, high)
            points = points & ~(1 << number) | 1 << high
        self.causes.add((points, failure))


def p90(values: Sequence[float]) -> float:
    return sorted(values)[int(0.9 * len(values))]


def interval(pairs: Sequence[tuple[float, float]], figure: Callable[[Sequence[float]], float]) -> str:
    """95 % of the ratio of both columns' figures, by resampling worlds."""
    draw = random.Random(1)
    ratios = []
    for _ in range(RESAMPLES):
        chosen = draw.choices(pairs, k=len(pairs))
        ratios.append(figure([one for one, _ in chosen]) / figure([other for _, other in chosen]))
    ratios.sort()
    return f"{ratios[RESAMPLES // 40]:.2f} to {ratios[-RESAMPLES // 40]:.2f}"


def compare(hunted: list[WorldHunt], name: str) -> None:
    """Trials until all is known, next to random searches that only drop faults, and that also weaken them."""
    needed = [float(one.known_after or RANDOM_BUDGET) for one in hunted]
    for weakens in (False, True):
        searches = {
            size: [float(RandomSearch(one.world, size, weakens=weakens).run()) for one in hunted] for size in SIZES
        }
        how = "drops and weakens" if weakens else "drops"
        for label, figure, share in (("median", statistics.median, 1 / 3), ("p90", p90, 1 / 5)):
            size = min(searches, key=lambda size: figure(searches[size]))
            random_needs = figure(searches[size])
            note = f"{figure(needed):g} of {random_needs:g} trials, random {how}, {size} faults; "
            note += interval(list(zip(needed, searches[size], strict=True)), figure)
            limited(
                f"{name}: {label} / random", figure(needed) / random_needs, "{:.2f}", most=round(share, 3), note=note
            )


def measure(seeds: range, *, grained: bool) -> None:
    name = "every mode a class" if grained else "classes of modes"
    hunted = [hunt(world) for world in worlds(seeds, grained=grained)]
    compare(hunted, name)
    found = [hit for one in hunted for hit in one.recall()]
    limited(f"{name}: recall in {BUDGET} trials", 100 * statistics.mean(found), "{:.1f} %", least=100)
    row(f"{name}: trials of a complete hunt", f"{statistics.median(one.trials for one in hunted):g}")
    limited(f"{name}: wrong causes per hunt", statistics.mean(one.wrong() for one in hunted), "{:.3f}", most=0.1)
    same = sum(hunt(one.world, shuffled=True).rounds == one.rounds for one in hunted[:50])
    limited(f"{name}: same plan in any order of arrival", same, "{} of 50", least=min(50, len(hunted)))
    noisy = [hunt(world, noisy=True) for world in worlds(seeds, grained=grained, noisy=True)]
    wrong = [float(one.wrong()) for one in noisy]
    limited(f"{name}, noise: wrong causes per hunt", statistics.mean(wrong), "{:.3f}", most=0.1, note=spread(wrong))
    found = [hit for one in noisy for hit in one.recall()]
    row(f"{name}, noise: recall in {BUDGET} trials", f"{100 * statistics.mean(found):.1f} %", "reported, no limit")
    limited(f"{name}: causes with a fault not met", sum(one.unmet() for one in [*hunted, *noisy]), "{}", most=0)


def spread(values: Sequence[float]) -> str:
    """95 % of the mean, by resampling worlds."""
    draw = random.Random(1)
    means = sorted(statistics.mean(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return f"{means[RESAMPLES // 40]:.3f} to {means[-RESAMPLES // 40]:.3f}"


def planning(seeds: range) -> None:
    """CPU per trial with 25 sites of 8 modes; triples come only when no pair is left, so they have a larger budget."""
    large = [generate(seed, grained=True, sites=25) for seed in seeds[:10]]
    for order, budget in ((2, BUDGET), (3, 10 * BUDGET)):
        hunted = [hunt(world, order=order, budget=budget) for world in (large if order == 2 else large[:2])]
        spent = [1000 * one.planning_s / one.trials for one in hunted]
        limited(f"planning per trial, 200 points, order {order}", statistics.median(spent), "{:.2f} ms", most=1)


def main(arguments: Sequence[str] = ()) -> None:
    parser = ArgumentParser()
    parser.add_argument("--held-out", action="store_true", help="seeds that were set aside: 3000 and up")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--worlds", type=int, default=100)
    options = parser.parse_args(list(arguments))
    first = 3000 if options.held_out else options.first
    seeds = range(first, first + options.worlds)
    print(f"hunt: seeds {seeds[0]} to {seeds[-1]}; 6 sites with 8 modes, 30 % of them end the trial; 95 % intervals")
    for grained in (True, False):
        measure(seeds, grained=grained)
    planning(seeds)


if __name__ == "__main__":
    main(sys.argv[1:])
