"""How sure a number is: intervals at 95 %, and the chance that k tries all pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from math import comb, fsum, sqrt
from operator import or_
from random import Random
from typing import NamedTuple

from holdfast.model.score import Interval

Z = 1.959963984540054
"""The normal quantile of 97.5 %: it leaves 2.5 % on either side."""


def wilson(c: float, n: float) -> Interval:
    """Wilson's interval of c successes in n tries, 0 to 1; it is never of zero width."""
    if n <= 0:
        return Interval(0.0, 1.0)
    p, z2 = c / n, Z * Z
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z * sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    # At the ends the formula gives 0 and 1 but for rounding.
    return Interval(0.0 if c <= 0 else max(0.0, centre - half), 1.0 if c >= n else min(1.0, centre + half))


def kish(weights: Sequence[tuple[float, int]]) -> float:
    """Kish's effective n: how many equal weights say as much as these, of which there are so many each."""
    squares = fsum(n * w * w for w, n in weights)
    return fsum(n * w for w, n in weights) ** 2 / squares if squares else 0.0


def pass_hat_k(c: int, n: int, k: int) -> float:
    """The chance that k tries all pass, where c of n did: C(c, k) / C(n, k)."""
    if not 1 <= k <= n:
        raise ValueError(f"k must be 1 to {n}, not {k}")
    missed = n - c
    if missed < k:  # the same quotient, of smaller numbers: with thousands of tries the others have thousands of digits
        return comb(n - k, missed) / comb(n, missed)
    return comb(c, k) / comb(n, k)


class Failing(NamedTuple):
    """A failed cell as resampling sees it; prompts are bits."""

    stratum: int
    """Which set of prompts it was asked."""
    failed: int
    undecided: int
    proven: bool
    """Whether it would count as passed, had its failed prompts not been asked."""


def cluster_bootstrap(
    passed: float, failing: Mapping[Failing, float], sizes: Sequence[int], seed: int, *, resamples: int = 1000
) -> Interval | None:
    """A score's interval, 0 to 100, by drawing prompts anew; None if every draw gives the same score.

    A draw leaves some prompts out, so a cell that needs all of them passes more often: the draws lie too high
    as a whole. They are moved by their mean distance from the score.
    """
    if not failing:
        return None
    total = passed + fsum(failing.values())
    rng, cells = Random(seed), sorted(failing.items())
    draws = sorted(_draw(passed, cells, sizes, rng) for _ in range(resamples))
    if not total or draws[0] == draws[-1]:
        return None
    score = 100.0 * passed / total
    shift = fsum(draws) / len(draws) - score
    edge = len(draws) // 40
    low, high = draws[edge] - shift, draws[-1 - edge] - shift
    return Interval(max(0.0, min(low, score)), min(100.0, max(high, score)), "bootstrap")


def _draw(passed: float, cells: Sequence[tuple[Failing, float]], sizes: Sequence[int], rng: Random) -> float:
    """The score of one draw of as many prompts as there are, with replacement."""
    drawn = [reduce(or_, (1 << rng.randrange(size) for _ in range(size)), 0) for size in sizes]
    held, lost = passed, 0.0
    for (stratum, failed, undecided, proven), weight in cells:
        if failed & drawn[stratum]:
            lost += weight
        elif proven and not undecided & drawn[stratum]:
            held += weight
    return 100.0 * held / (held + lost) if held + lost else 0.0
