"""Two runs compared rule by rule: McNemar's exact test, Holm's correction across rules. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil, comb, sqrt
from statistics import NormalDist
from typing import Literal, NamedTuple

from msgspec import Struct

Change = Literal["worse", "better", "same", "cannot tell"]


class RuleComparison(Struct, frozen=True, omit_defaults=True):
    """One rule in both runs, paired by scenario, prompt and params, with the replicas of each run combined."""

    rule: str
    change: Change
    pairs: int
    passed_before: int
    passed_after: int
    lost: int
    """Pairs that passed before and fail now."""
    gained: int
    """Pairs that failed before and pass now."""
    p: float | None
    """The p-value of McNemar's exact test over prompts: how likely chance alone makes the runs differ this much. None
    if the runs were compared exactly.
    """
    p_holm: float | None
    """The same, adjusted for the number of compared rules."""
    part: str = ""
    """The part of a `ci` run that the rule belongs to."""
    more_prompts: int | None = None
    """About how many more prompts would decide it, if they change as these did; None if nothing points either way."""
    obeyed: tuple[str, ...] = ()
    """Attacks that are obeyed now and were not in any replica before: one is enough to be worse."""


class Comparison(Struct, frozen=True, omit_defaults=True):
    """The changes from one run to another."""

    before: str
    after: str
    rules: tuple[RuleComparison, ...]
    only_before: int = 0
    """Decided prompts, by rule and scenario, that the other run does not have."""
    only_after: int = 0
    left_out: tuple[str, ...] = ()
    """Rules and scenarios that are not compared, and why."""
    notes: tuple[str, ...] = ()

    def select_rules(self, change: Change) -> tuple[RuleComparison, ...]:
        """Return the rules with this outcome."""
        return tuple(one for one in self.rules if one.change == change)


ALPHA = 0.05
POWER = 0.8
"""The probability with which that many more prompts would detect the observed difference."""
_MOST = 1_000_000


class PromptPairs(NamedTuple):
    """The pairs of one rule on one prompt, one per scenario, by their change."""

    both: int = 0
    """Passed before and after."""
    lost: int = 0
    gained: int = 0
    neither: int = 0


class PairCounts(NamedTuple):
    """The pairs of one rule, by prompt."""

    rule: str
    part: str = ""
    prompts: Sequence[PromptPairs] = ()
    obeyed: tuple[str, ...] = ()
    """Attacks that succeeded for the first time."""
    exact: bool = False
    """Only the agent can differ between the runs, so each change is the agent's."""


def compute_mcnemar(changes: Sequence[int]) -> float:
    """Return the exact two-sided p of each prompt's lost minus gained pairs: how often fair coins would be as uneven.

    A prompt is one coin, however many scenarios ask it, because an agent's reaction to a prompt is similar in all of
    them. With one scenario this is McNemar's test.
    """
    coins = Counter(abs(change) for change in changes if change)
    # How many ways of tossing the coins give each sum; a coin weighs as much as its prompt has changed.
    tosses = Counter({0: 1})
    for size, n in coins.items():
        tossed: Counter[int] = Counter()
        for total, count in tosses.items():
            for heads in range(n + 1):
                tossed[total + size * (2 * heads - n)] += count * comb(n, heads)
        tosses = tossed
    observed = abs(sum(changes))
    return float(sum(count for total, count in tosses.items() if abs(total) >= observed) / 2 ** coins.total())


def adjust_by_holm(ps: Sequence[float]) -> list[float]:
    """Adjust each p so that at most one run in twenty has a false result below 5 %."""
    adjusted = [1.0] * len(ps)
    least = 0.0
    # Holm's step-down: the smallest p is multiplied by the number of tests, the next by one less, and so on. A later p
    # must not become smaller than an earlier one, hence the running maximum. It controls false alarms as Bonferroni
    # does, and finds more.
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        least = max(least, min(1.0, ps[place] * (len(ps) - rank)))
        adjusted[place] = least
    return adjusted


def compare_rules(counts: Sequence[PairCounts]) -> tuple[RuleComparison, ...]:
    """Compare every rule that has pairs, in the given order."""
    paired = [one for one in counts if one.prompts]
    raw = {place: compute_mcnemar(_get_changes(one)) for place, one in enumerate(paired) if not one.exact}
    adjusted = dict(zip(raw, adjust_by_holm(list(raw.values())), strict=True))
    return tuple(
        _compare_rule(one, raw.get(place), adjusted.get(place), ALPHA / max(1, len(raw)))
        for place, one in enumerate(paired)
    )


def _compare_rule(one: PairCounts, p: float | None, p_holm: float | None, alpha: float) -> RuleComparison:
    both, lost, gained, neither = map(sum, zip(*one.prompts, strict=True))
    change = _classify_change(one, p_holm, lost, gained)
    return RuleComparison(
        one.rule,
        change,
        both + lost + gained + neither,
        both + lost,
        both + gained,
        lost,
        gained,
        p,
        p_holm,
        one.part,
        estimate_prompts(one, alpha) if change == "cannot tell" else None,
        one.obeyed,
    )


def _classify_change(one: PairCounts, p: float | None, lost: int, gained: int) -> Change:
    if one.obeyed:  # an attack that succeeds has found a way: that does not depend on chance
        return "worse"
    if p is None:  # exact: a lost prompt is lost, whatever others have gained
        return "worse" if lost else "better" if gained else "same"
    if p < ALPHA:
        return "worse" if lost > gained else "better"
    return "cannot tell" if lost or gained else "same"


def _get_changes(one: PairCounts) -> list[int]:
    return [prompt.lost - prompt.gained for prompt in one.prompts]


def estimate_prompts(one: PairCounts, alpha: float) -> int | None:
    """Return about how many more prompts would detect the observed difference; None if nothing points either way.

    The leading side's share is shrunk a little towards a half: one prompt alone is not certain.
    """
    changes = _get_changes(one)
    lost, gained = sum(change > 0 for change in changes), sum(change < 0 for change in changes)
    if lost == gained:
        return None
    # The usual sample size of a sign test: how many changed prompts are needed so that a share this far from a half is
    # detected with 80 % power at the corrected level. It is then scaled from changed prompts to all prompts.
    share = (max(lost, gained) + 0.5) / (lost + gained + 1)
    z, power = NormalDist().inv_cdf(1 - alpha / 2), NormalDist().inv_cdf(POWER)
    wanted = ((z + 2 * power * sqrt(share * (1 - share))) / (2 * share - 1)) ** 2
    prompts = ceil(len(changes) * wanted / (lost + gained)) - len(changes)
    return min(_MOST, _round_up(max(1, prompts)))


def _round_up(n: int) -> int:
    """Round up to two significant digits: the estimate is no more precise than that."""
    step = int(10 ** max(0, len(str(n)) - 2))
    return ceil(n / step) * step
