"""Two runs compared, rule by rule."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Change = Literal["worse", "better", "same", "cannot tell"]


class RuleComparison(Struct, frozen=True, omit_defaults=True):
    """One rule in both runs: paired by scenario, prompt and params, the replicas of each run combined."""

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
    """Of McNemar's exact test, a prompt counting once: how often chance alone would part the two runs so far. None:
    the runs were compared exactly."""
    p_holm: float | None
    """The same, allowing for how many rules were looked at."""
    part: str = ""
    """The part of a `ci` run that the rule belongs to."""
    more_prompts: int | None = None
    """About so many more would decide it, if they change as these did; None where nothing points either way."""
    obeyed: tuple[str, ...] = ()
    """Attacks that are obeyed now, and were in no replica before: one is enough to be worse."""


class Comparison(Struct, frozen=True, omit_defaults=True):
    """What changed from one run to another."""

    before: str
    after: str
    rules: tuple[RuleComparison, ...]
    only_before: int = 0
    """Decided prompts, by rule and scenario, without a partner in the other run."""
    only_after: int = 0
    left_out: tuple[str, ...] = ()
    """Rules and scenarios that are not compared, and why."""
    notes: tuple[str, ...] = ()

    def of(self, change: Change) -> tuple[RuleComparison, ...]:
        """The rules with this outcome."""
        return tuple(one for one in self.rules if one.change == change)
