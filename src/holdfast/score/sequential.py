"""When replicas have decided: a sequential test of one prompt, or of one case. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import log
from typing import NamedTuple

from holdfast.model.spec import Aggregation, Spec
from holdfast.model.verdict import Outcome, Verdict
from holdfast.score.cell import CellCount, needed, settle
from holdfast.score.unmet import NO_REASON, Why

EITHER_WAY = 0.2
"""How far from the rate that is asked for an agent must be for the test to be right in 95 % of cases."""
ERROR = 0.05
_WALD = log((1 - ERROR) / ERROR)
"""Where Wald's test stops, if nothing limits it."""
_NEAR_WALD = sorted(product(range(5, 16), repeat=2), key=lambda pair: abs(pair[0] - 10) + abs(pair[1] - 10))
"""Other places to stop, for a fail and for a pass, in tenths of Wald's: the nearest first."""
_NEVER = 1e-12
"""What is as likely as this is not followed any further."""


class Stopped(NamedTuple):
    """What the first replicas came to, in their order."""

    outcome: Outcome
    used: int
    """Replicas that were looked at until it was decided, or all there were."""
    passes: int
    fails: int
    at_limit: bool = False
    """Decided by the last replica that was allowed, not by the test."""


class StopRule(NamedTuple):
    """What a pass and a fail weigh, and how much weight decides."""

    passed: float
    failed: float
    fail_at: float
    pass_at: float

    def decided(self, passes: int, fails: int) -> bool | None:
        """Whether it holds; None as long as that is open."""
        weight = passes * self.passed + fails * self.failed
        return True if weight >= self.pass_at else False if weight <= self.fail_at else None


def pass_chance(rule: StopRule, limit: int, need: int, rate: float) -> float:
    """How often an agent of this rate passes, worked out path by path; at the limit `need` passes decide."""
    open_, passed = {0: 1.0}, 0.0
    for used in range(1, limit + 1):
        if not open_:
            break
        after: dict[int, float] = {}
        for passes, chance in open_.items():
            for now, share in ((passes + 1, rate), (passes, 1 - rate)):
                held = rule.decided(now, used - now)
                if held is None:
                    after[now] = after.get(now, 0.0) + chance * share
                elif held:
                    passed += chance * share
        open_ = {passes: chance for passes, chance in after.items() if chance > _NEVER}
    return passed + sum(chance for passes, chance in open_.items() if passes >= need)


@lru_cache(maxsize=256)
def stop_rule(rate: float, limit: int, need: int) -> tuple[StopRule, float]:
    """Where to stop, and how often that is wrong at most for an agent 0.2 away from the rate.

    Wald's limits, or the nearest that are wrong in 5 % at most within so many replicas; where none are, Wald's.
    """
    # Where 0.2 further is no rate any more, weights are those of half of the way to what is.
    low, high = max(rate - EITHER_WAY, rate / 2), min(rate + EITHER_WAY, (1 + rate) / 2)
    passed, failed = log(high / low), log((1 - high) / (1 - low))
    found: list[tuple[float, StopRule]] = []
    for fail_at, pass_at in _NEAR_WALD:
        rule = StopRule(passed, failed, -_WALD * fail_at / 10, _WALD * pass_at / 10)
        wrong_pass = pass_chance(rule, limit, need, max(0.0, rate - EITHER_WAY))
        wrong_fail = 1.0 - pass_chance(rule, limit, need, min(1.0, rate + EITHER_WAY))
        found.append((max(wrong_pass, wrong_fail), rule))
        if found[-1][0] <= ERROR:
            return rule, found[-1][0]
    return found[0][1], found[0][0]


class SequentialTest:
    """One aggregation and the most replicas: whether so many passes and fails decide."""

    def __init__(self, how: Aggregation, limit: int) -> None:
        self.how = how
        self.limit = limit
        self.need = limit if how.kind == "mean" else needed(how, limit)
        self.error = 0.0
        """How often it is wrong at most about an agent 0.2 away from the rate; 0 where nothing is tested."""
        self._rule: StopRule | None = None
        rate = {"majority": 0.5, "rate": how.value or 0.0}.get(how.kind)
        if rate is not None and 0.0 < rate < 1.0:
            self._rule, self.error = stop_rule(rate, limit, self.need)

    def decided(self, passes: int, fails: int) -> bool | None:
        """Whether it holds; None as long as that is open.

        `all` is lost by the first fail, `any` held by the first pass, `at_least` held by so many passes.
        """
        if self._rule is not None:
            return self._rule.decided(passes, fails)
        if self.how.kind != "mean" and passes >= self.need:
            return True
        return False if self.limit - fails < self.need else None

    def stop(self, outcomes: Iterable[str]) -> Stopped:
        """Outcomes of replicas in their order: errors and what is unproven tell nothing."""
        passes = fails = errors = used = 0
        for outcome in outcomes:
            used += 1
            passes += outcome == "pass"
            fails += outcome == "fail"
            errors += outcome == "error"
            held = self.decided(passes, fails)
            if held is not None and (self._rule is not None or used < self.limit):
                return Stopped("pass" if held else "fail", used, passes, fails)
        if used < self.limit:
            return Stopped("error" if errors else "unproven", used, passes, fails)
        outcome = settle(passes, fails, errors, self.limit, self.need)
        return Stopped(outcome, used, passes, fails, outcome in ("pass", "fail"))


def too_few_replicas(spec: Spec) -> Iterator[str]:
    """Says of each rate that is tested how often that is wrong, where the limit leaves too few replicas for 5 %."""
    own = [rule.replica_aggregation for rule in spec.invariants]
    for how in dict.fromkeys([*own, spec.scoring.replica_aggregation]):
        error = SequentialTest(how, spec.replicas).error if how is not None else 0.0
        if how is not None and error > ERROR:
            name = how.kind if how.value is None else f"{how.kind} {how.value:g}"
            yield (
                f"replicas auto: {spec.replicas} replicas are too few to test {name}: of agents {EITHER_WAY} away from "
                f"it up to {100 * error:.0f} % are judged wrongly, not {100 * ERROR:.0f} %; --max-replicas 20 is enough"
            )


# -- sequential cell -------------------------------------------------------------------------------
_OUTCOMES = ("pass", "fail", "error", "unproven")


class SequentialCount(CellCount):
    """Verdicts after the one that decided change nothing: whoever shares the trials may need more of them."""

    __slots__ = ("_by_replica", "_tests", "_told")

    def __init__(self, asked: Sequence[int], how: Aggregation) -> None:
        super().__init__(asked, sum(asked))
        self._tests = [SequentialTest(how, n) if n else None for n in asked]
        self._by_replica: list[dict[int, str]] = [{} for _ in asked]
        self._told = False

    def count(self, place: int, replica: int, verdict: Verdict) -> None:
        super().count(place, replica, verdict)
        self._by_replica[place][replica] = verdict.outcome

    def stopped(self, place: int) -> Stopped:
        """What the replicas of one prompt came to."""
        test, seen = self._tests[place], self._by_replica[place]
        assert test is not None, "nothing runs there"
        return test.stop(seen[replica] for replica in sorted(seen))

    def open_at(self, place: int) -> bool:
        """Whether another replica of the prompt would tell more."""
        test = self._tests[place]
        if test is None:
            return False
        found = self.stopped(place)
        return found.outcome in ("error", "unproven") and found.used < test.limit

    def first_decided(self) -> bool:
        """Whether every prompt is decided now, and was not when this was last asked."""
        if self._told or any(self.open_at(place) for place in range(len(self.asked))):
            return False
        self._told = True
        return True

    def _prompts(self, how: Aggregation) -> tuple[int, int, bool, bool, Counter[tuple[int, int]]]:
        """As of any cell, but without the tries: where to stop depended on them, so that their rate is biased."""
        failed = undecided = 0
        broken = flaky = False
        for place, one in self._each():
            failed |= (one.outcome == "fail") << place
            undecided |= (one.outcome in ("error", "unproven")) << place
            broken |= one.outcome == "error"
            flaky |= bool(one.passes and one.fails)
        return failed, undecided, broken, flaky, Counter()

    def _each(self) -> Iterator[tuple[int, Stopped]]:
        for place, test in enumerate(self._tests):
            if test is not None:
                yield place, self.stopped(place)

    def _why(self, outcome: Outcome, prompts: int) -> Why:
        limits = [one.used for _, one in self._each() if one.at_limit]
        if outcome == "pass":
            return Why(f"passed at the limit of {max(limits)} replicas", "passed-at-limit") if limits else NO_REASON
        if (first := self._first(outcome, prompts)) is not None:
            return first
        missing = [(one.used, self.asked[place]) for place, one in self._each() if self.open_at(place)]
        used, most = missing[0] if missing else (0, 0)
        return Why(f"undecided after {used} of at most {most} replicas: the next replica did not run", "not-run")
