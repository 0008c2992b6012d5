"""Two runs compared, rule by rule."""

from __future__ import annotations

from typing import Literal

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
