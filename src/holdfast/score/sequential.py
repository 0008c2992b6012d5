"""When replicas have decided: a sequential test of one prompt, or of one case. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from math import log
from typing import NamedTuple

from holdfast.model.spec import Aggregation
from holdfast.model.verdict import Outcome
from holdfast.score.combine import needed, settle

EITHER_WAY = 0.2
"""How far from the rate that is asked for an agent must be for the test to be right in 95 % of cases."""
ERROR = 0.05
_BOUND = log((1 - ERROR) / ERROR)


class Stopped(NamedTuple):
    """What the first replicas came to, in their order."""

    outcome: Outcome
    used: int
    """Replicas that were looked at until it was decided, or all there were."""
    passes: int
    fails: int
    at_limit: bool = False
    """Decided by the last replica that was allowed, not by the test."""


class SequentialTest:
    """One aggregation and the most replicas: whether so many passes and fails decide."""

    def __init__(self, how: Aggregation, limit: int) -> None:
        self.how = how
        self.limit = limit
        self.need = limit if how.kind == "mean" else needed(how, limit)
        rate = {"majority": 0.5, "rate": how.value or 0.0}.get(how.kind)
        self._tests = rate is not None and 0.0 < rate < 1.0
        if rate is not None and self._tests:
            # Where 0.2 further is no rate any more: half of the way to what is.
            low, high = max(rate - EITHER_WAY, rate / 2), min(rate + EITHER_WAY, (1 + rate) / 2)
            self._passed, self._failed = log(high / low), log((1 - high) / (1 - low))

    def decided(self, passes: int, fails: int) -> bool | None:
        """Whether it holds; None as long as that is open.

        `all` is lost by the first fail, `any` held by the first pass, `at_least` held by so many passes.
        """
        if not self._tests:
            if self.how.kind != "mean" and passes >= self.need:
                return True
            return False if self.limit - fails < self.need else None
        weight = passes * self._passed + fails * self._failed
        return True if weight >= _BOUND else False if weight <= -_BOUND else None

    def stop(self, outcomes: Iterable[str]) -> Stopped:
        """Outcomes of replicas in their order: errors and what is unproven tell nothing."""
        passes = fails = errors = used = 0
        for outcome in outcomes:
            used += 1
            passes += outcome == "pass"
            fails += outcome == "fail"
            errors += outcome == "error"
            held = self.decided(passes, fails)
            if held is not None and (self._tests or used < self.limit):
                return Stopped("pass" if held else "fail", used, passes, fails)
        if used < self.limit:
            return Stopped("error" if errors else "unproven", used, passes, fails)
        outcome = settle(passes, fails, errors, self.limit, self.need)
        return Stopped(outcome, used, passes, fails, outcome in ("pass", "fail"))
