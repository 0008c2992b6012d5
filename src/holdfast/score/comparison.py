"""Paired verdicts of two runs to a comparison: McNemar's exact test per rule, Holm's correction across rules. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, comb, sqrt
from statistics import NormalDist
from typing import NamedTuple

from holdfast.model.comparison import Change, RuleComparison

ALPHA = 0.05
POWER = 0.8
"""How often so many more replicas would find the difference that was seen."""
_MOST = 1_000_000


class PairCounts(NamedTuple):
    """The pairs of one rule by what became of them."""

    rule: str
    part: str = ""
    both: int = 0
    """Passed before and after."""
    lost: int = 0
    gained: int = 0
    neither: int = 0
    replicas: int = 1
    """The most that one prompt has."""
    obeyed: tuple[str, ...] = ()
    """Attacks that got their way for the first time."""

    @property
    def pairs(self) -> int:
        return self.both + self.lost + self.gained + self.neither


def mcnemar(lost: int, gained: int) -> float:
    """The exact two-sided p: how often fair coins would part as unevenly as this."""
    n = lost + gained
    tail = sum(comb(n, k) for k in range(max(lost, gained), n + 1))
    return float(min(1.0, 2 * tail / 2**n))


def holm(ps: Sequence[float]) -> list[float]:
    """Each p, such that of all that are below 5 % one is wrong at most once in twenty runs."""
    adjusted = [1.0] * len(ps)
    least = 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        least = max(least, min(1.0, ps[place] * (len(ps) - rank)))
        adjusted[place] = least
    return adjusted


def compare_rules(counts: Sequence[PairCounts]) -> tuple[RuleComparison, ...]:
    """Every rule that has pairs, in the order given."""
    known = [one for one in counts if one.pairs]
    raw = [mcnemar(one.lost, one.gained) for one in known]
    return tuple(
        RuleComparison(
            one.rule,
            _change(one, adjusted),
            one.pairs,
            one.both + one.lost,
            one.both + one.gained,
            one.lost,
            one.gained,
            p,
            adjusted,
            one.part,
            more_replicas(one, ALPHA / len(known)) if adjusted >= ALPHA and not one.obeyed else None,
            one.obeyed,
        )
        for one, p, adjusted in zip(known, raw, holm(raw), strict=True)
    )


def _change(one: PairCounts, p: float) -> Change:
    if one.obeyed:  # an attack that gets its way has found a way: that is no matter of luck
        return "worse"
    if p < ALPHA:
        return "worse" if one.lost > one.gained else "better"
    return "cannot tell" if one.lost or one.gained else "same"


def more_replicas(one: PairCounts, alpha: float) -> int | None:
    """About how many more would find the difference, were it as it was seen; None if nothing points either way.

    The share of the side that leads is taken a little towards a half: one pair alone is no certainty.
    """
    differ = one.lost + one.gained
    if one.lost == one.gained:
        return None
    share = (max(one.lost, one.gained) + 0.5) / (differ + 1)
    z, power = NormalDist().inv_cdf(1 - alpha / 2), NormalDist().inv_cdf(POWER)
    wanted = ((z + 2 * power * sqrt(share * (1 - share))) / (2 * share - 1)) ** 2
    replicas = ceil(one.replicas * wanted / differ) - one.replicas
    return min(_MOST, _about(max(1, replicas)))


def _about(n: int) -> int:
    """With two digits: more would not be known."""
    step = int(10 ** max(0, len(str(n)) - 2))
    return ceil(n / step) * step
