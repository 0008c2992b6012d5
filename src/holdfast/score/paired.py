"""Chaos beside calm on the same prompts: what the difference is, and how sure. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, floor, fsum, sqrt
from typing import NamedTuple

from holdfast.model.score import Interval, PairedDifference

PSEUDO = 2.0
"""Prompts that are added, one that lost all and one that gained all: without them few prompts seem too sure."""
_WIDER = 2.05
"""In the place of 1.96: found by simulation."""


class RatePair(NamedTuple):
    """One rule on one prompt: how often it held in calm and under chaos, 0 to 1."""

    prompt: int
    calm: float
    chaos: float
    rules: int = 1
    """So many rules are alike here."""


def paired_difference(pairs: Iterable[RatePair]) -> PairedDifference | None:
    """Chaos minus calm in points, the mean over all pairs; None if there is none.

    Rules of one prompt may fail together, so that each prompt counts as one: the mean of its rules. The interval is
    Bonett and Price's for paired proportions, of so many prompts.
    """
    sums: dict[int, tuple[float, int]] = {}
    for one in pairs:
        change, count = sums.get(one.prompt, (0.0, 0))
        sums[one.prompt] = change + one.rules * (one.chaos - one.calm), count + one.rules
    known = [(change, count) for change, count in sums.values() if count]
    n = sum(count for _, count in known)
    if not n:
        return None
    mean = fsum(change for change, _ in known) / n
    square = fsum(change * change / count for change, count in known) / n
    low, high = _limits(mean, square, n * n / sum(count * count for _, count in known))
    found = Interval(floor(low * 1e4) / 100, ceil(high * 1e4) / 100, "paired", len(known))
    return PairedDifference(round(100 * mean, 2) + 0.0, found, n)


def _limits(mean: float, square: float, n: float) -> tuple[float, float]:
    centre = mean * n / (n + PSEUDO)
    spread = ((square * n + PSEUDO) / (n + PSEUDO) - centre * centre) / (n + PSEUDO)
    half = _WIDER * sqrt(spread)
    return max(-1.0, min(mean, centre - half)), min(1.0, max(mean, centre + half))
