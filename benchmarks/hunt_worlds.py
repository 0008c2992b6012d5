"""Generated agents with planted defects, to measure a hunt on: pure functions of a seed.

A world is a sequence of call sites. The modes of a site fall into classes that the agent cannot tell apart: it treats
a 503 and a reset alike. The agent absorbs a class, or the class ends the trial (a *cutter*). Causes are planted on
classes: a trial fails if it met every class of a cause. In a `grained` world every mode is a class of its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from holdfast.hunt.outcomes import Failure, Plan, PlanOutcome, Point, list_bits

CUTTERS = 0.3
"""The share of points that end the trial."""
RULES = 2
Kind = tuple[int, int]
"""A site, and a class of its modes."""


@dataclass(frozen=True)
class World:
    """One generated agent. Its points are numbered site * modes + mode."""

    seed: int
    classes: tuple[tuple[int, ...], ...]
    """By site and mode: the class of the mode."""
    cuts: frozenset[Kind]
    """Classes that end the trial."""
    causes: tuple[frozenset[Kind], ...]
    fires: float = 1.0
    """How often a cause fails a trial that met it."""
    calm_fails: float = 0.0
    """How often a trial fails for no reason."""

    @property
    def modes(self) -> int:
        return len(self.classes[0])

    def points(self) -> list[Point]:
        return [Point(site, rung) for site, modes in enumerate(self.classes) for rung in range(len(modes))]

    def kind(self, number: int) -> Kind:
        site, mode = divmod(number, self.modes)
        return site, self.classes[site][mode]

    def kinds(self, plan: Plan) -> frozenset[Kind]:
        return frozenset(self.kind(number) for number in list_bits(plan))

    def run(self, plan: Plan, draw: random.Random) -> PlanOutcome:
        """One trial."""
        by_site = {number // self.modes: number for number in list_bits(plan)}
        met, last = 0, len(self.classes) - 1
        steps: list[str] = []
        for site, number in sorted(by_site.items()):
            met |= 1 << number
            kind = self.kind(number)
            steps.append(str(kind))
            if kind in self.cuts:
                last = site
                break
        kinds = self.kinds(met)
        failures = {
            Failure(f"rule-{n % RULES}")
            for n, cause in enumerate(self.causes)
            if cause <= kinds and draw.random() < self.fires
        }
        if draw.random() < self.calm_fails:
            failures.add(Failure("rule-0"))
        return PlanOutcome(plan, met, (1 << last + 1) - 1, tuple(sorted(failures)), " ".join(steps), steps=tuple(steps))

    def weakest(self, cause: Iterable[Kind]) -> Plan:
        """The cause as a plan: the weakest mode of each class."""
        return sum(1 << site * self.modes + self.classes[site].index(kind) for site, kind in cause)

    def small_causes(self) -> set[frozenset[Kind]]:
        """The causes that a hunt of order 2 must find."""
        return {cause for cause in self.causes if len(cause) <= 2}


def generate(
    seed: int, *, fires: float = 1.0, calm_fails: float = 0.0, grained: bool = False, sites: int = 6, modes: int = 8
) -> World:
    """A world with one to four causes of one to three faults."""
    draw = random.Random(seed)
    classes = [_classes(draw, modes, grained) for _ in range(sites)]
    kinds = [(site, kind) for site in range(sites) for kind in sorted(set(classes[site]))]
    sizes = {(site, kind): classes[site].count(kind) for site, kind in kinds}
    cuts: set[Kind] = set()
    for kind in draw.sample(kinds, len(kinds)):
        if sum(sizes[one] for one in cuts) + sizes[kind] <= CUTTERS * sites * modes:
            cuts.add(kind)
    causes: list[frozenset[Kind]] = []
    for order in [1] * draw.randint(0, 1) + [2] * draw.randint(1, 2) + [3] * draw.randint(0, 1):
        causes.append(_cause(draw, order, kinds, cuts, causes))
    return World(seed, tuple(classes), frozenset(cuts), tuple(causes), fires, calm_fails)


def _classes(draw: random.Random, modes: int, grained: bool) -> tuple[int, ...]:
    if grained:
        return tuple(range(modes))
    borders = sorted(draw.sample(range(1, modes), draw.randint(min(2, modes - 1), min(5, modes - 1))))
    return tuple(sum(mode >= border for border in borders) for mode in range(modes))


def _cause(
    draw: random.Random, order: int, kinds: list[Kind], cuts: set[Kind], others: list[frozenset[Kind]]
) -> frozenset[Kind]:
    """Faults at different sites, of which only the last may end the trial; no cause contains another."""
    while True:
        cause = frozenset(draw.sample(kinds, order))
        sites = sorted(site for site, _ in cause)
        feasible = all(kind not in cuts or kind[0] == sites[-1] for kind in cause)
        if len(set(sites)) == order and feasible and not any(one <= cause or cause <= one for one in others):
            return cause


def worlds(seeds: Iterable[int], *, grained: bool, noisy: bool = False) -> Iterator[World]:
    fires, calm_fails = (0.7, 0.02) if noisy else (1.0, 0.0)
    return (generate(seed, fires=fires, calm_fails=calm_fails, grained=grained) for seed in seeds)
