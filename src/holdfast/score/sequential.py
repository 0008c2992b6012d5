"""Decides when replicas are enough: a sequential test of one prompt or one case. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import log
from typing import NamedTuple

from holdfast.model.score import CellCause
from holdfast.model.spec import Aggregation, Spec
from holdfast.model.verdict import Outcome, Verdict
from holdfast.score.cell import CellCount, count_needed, decide_prompt
from holdfast.score.unmet import NO_REASON

EITHER_WAY = 0.2
"""How far from the required rate an agent must be for the test to be right in 95 % of cases."""
ERROR = 0.05
_WALD = log((1 - ERROR) / ERROR)
"""Where Wald's test stops without a limit."""
_NEAR_WALD = sorted(product(range(5, 16), repeat=2), key=lambda pair: abs(pair[0] - 10) + abs(pair[1] - 10))
"""Other thresholds for a fail and for a pass, in tenths of Wald's, nearest first."""
_NEVER = 1e-12
"""Paths less likely than this are not followed."""


class StopResult(NamedTuple):
    """The result of the first replicas, in order."""

    outcome: Outcome
    used: int
    """Replicas examined until it was decided, or all of them."""
    passes: int
    fails: int
    at_limit: bool = False
    """Decided by the last allowed replica, not by the test."""


class StopRule(NamedTuple):
    """The weights of a pass and a fail, and the thresholds that decide."""

    passed: float
    failed: float
    fail_at: float
    pass_at: float

    def decide(self, passes: int, fails: int) -> bool | None:
        """Return whether it passes; None while undecided."""
        weight = passes * self.passed + fails * self.failed
        return True if weight >= self.pass_at else False if weight <= self.fail_at else None


def compute_pass_chance(rule: StopRule, limit: int, need: int, rate: float) -> float:
    """Return how often an agent of this rate passes, computed path by path; at the limit `need` passes decide."""
    # Exact, by dynamic programming: `open_` maps the passes so far to the probability of being undecided with them.
    # The number of replicas is the loop variable, so the passes alone describe a state.
    open_, passed = {0: 1.0}, 0.0
    for used in range(1, limit + 1):
        if not open_:
            break
        after: dict[int, float] = {}
        for passes, chance in open_.items():
            for passes_now, share in ((passes + 1, rate), (passes, 1 - rate)):
                result = rule.decide(passes_now, used - passes_now)
                if result is None:
                    after[passes_now] = after.get(passes_now, 0.0) + chance * share
                elif result:
                    passed += chance * share
        open_ = {passes: chance for passes, chance in after.items() if chance > _NEVER}
    return passed + sum(chance for passes, chance in open_.items() if passes >= need)


@lru_cache(maxsize=256)
def find_stop_rule(rate: float, limit: int, need: int) -> tuple[StopRule, float]:
    """Return the thresholds, and how often they are wrong at most for an agent 0.2 away from the rate.

    Wald's thresholds, or the nearest that are wrong in at most 5 % within this many replicas; if there are none,
    Wald's.
    """
    # If the rate plus 0.2 exceeds 1, the weights are those of half the distance to 1; likewise at 0.
    low, high = max(rate - EITHER_WAY, rate / 2), min(rate + EITHER_WAY, (1 + rate) / 2)
    passed, failed = log(high / low), log((1 - high) / (1 - low))
    # Wald's thresholds assume no limit on the number of replicas. With a limit, undecided paths are settled by the
    # count at the end, and that adds errors. So nearby thresholds are tried until both errors are within bounds.
    candidates: list[tuple[float, StopRule]] = []
    for fail_at, pass_at in _NEAR_WALD:
        rule = StopRule(passed, failed, -_WALD * fail_at / 10, _WALD * pass_at / 10)
        wrong_pass = compute_pass_chance(rule, limit, need, max(0.0, rate - EITHER_WAY))
        wrong_fail = 1.0 - compute_pass_chance(rule, limit, need, min(1.0, rate + EITHER_WAY))
        candidates.append((max(wrong_pass, wrong_fail), rule))
        if candidates[-1][0] <= ERROR:
            return rule, candidates[-1][0]
    return candidates[0][1], candidates[0][0]


class SequentialTest:
    """Decides for one aggregation, with at most `limit` replicas, whether a number of passes and fails is enough."""

    def __init__(self, how: Aggregation, limit: int) -> None:
        self.how = how
        self.limit = limit
        self.need = limit if how.kind == "mean" else count_needed(how, limit)
        self.error = 0.0
        """How often it is wrong at most about an agent 0.2 away from the rate; 0 if nothing is tested."""
        self._rule: StopRule | None = None
        rate = {"majority": 0.5, "rate": how.value or 0.0}.get(how.kind)
        if rate is not None and 0.0 < rate < 1.0:
            self._rule, self.error = find_stop_rule(rate, limit, self.need)

    def decide(self, passes: int, fails: int) -> bool | None:
        """Return whether it passes; None while undecided.

        The first fail decides `all`, the first pass decides `any`, and enough passes decide `at_least`.
        """
        if self._rule is not None:
            return self._rule.decide(passes, fails)
        if self.how.kind != "mean" and passes >= self.need:
            return True
        return False if self.limit - fails < self.need else None

    def stop(self, outcomes: Iterable[str]) -> StopResult:
        """Apply the test to outcomes of replicas in order; errors and unproven ones say nothing."""
        passes = fails = errors = used = 0
        for outcome in outcomes:
            used += 1
            passes += outcome == "pass"
            fails += outcome == "fail"
            errors += outcome == "error"
            # A tested rate may decide at any replica. Without one, a decision by the very last allowed replica is
            # reported as one at the limit, as is a count that the test left open.
            result = self.decide(passes, fails)
            if result is not None and (self._rule is not None or used < self.limit):
                return StopResult("pass" if result else "fail", used, passes, fails)
        if used < self.limit:
            return StopResult("error" if errors else "unproven", used, passes, fails)
        outcome = decide_prompt(passes, fails, errors, self.limit, self.need)
        return StopResult(outcome, used, passes, fails, outcome in ("pass", "fail"))


def warn_too_few_replicas(spec: Spec) -> Iterator[str]:
    """Yield a warning for each tested rate if the limit leaves too few replicas for an error of 5 %."""
    own = [rule.replica_aggregation for rule in spec.invariants]
    for how in dict.fromkeys([*own, spec.scoring.replica_aggregation]):
        error = SequentialTest(how, spec.replicas).error if how is not None else 0.0
        if how is not None and error > ERROR:
            name = how.kind if how.value is None else f"{how.kind} {how.value:g}"
            yield (
                f"replicas auto: {spec.replicas} replicas are too few to test {name}: up to {100 * error:.0f} % of "
                f"agents whose rate is {EITHER_WAY} away from it are judged wrongly (limit: {100 * ERROR:.0f} %); "
                "--max-replicas 20 is enough"
            )


# -- sequential cell -------------------------------------------------------------------------------
class SequentialCount(CellCount):
    """A cell whose prompts stop as soon as they are decided.

    Later verdicts change nothing: they arrive because other cells share the trials.
    """

    __slots__ = ("_by_replica", "_is_decided", "_tests")
    keeps_tries = False
    """The tries decided where it stopped, so their rate is biased."""

    def __init__(self, expected_by_task: Sequence[int], how: Aggregation) -> None:
        super().__init__(expected_by_task)
        self._tests = [SequentialTest(how, n) if n else None for n in expected_by_task]
        self._by_replica: list[dict[int, str]] = [{} for _ in expected_by_task]
        self._is_decided = False

    def add_verdict(self, place: int, replica: int, verdict: Verdict) -> None:
        super().add_verdict(place, replica, verdict)
        self._by_replica[place][replica] = verdict.outcome

    def stop_prompt(self, place: int) -> StopResult:
        """Return the result of the replicas of one prompt."""
        # Replicas may end in any order. The test reads them by number, so that the same replicas always stop at the
        # same place, whatever finished first.
        test, outcomes = self._tests[place], self._by_replica[place]
        assert test is not None, "nothing runs there"
        return test.stop(outcomes[replica] for replica in sorted(outcomes))

    def needs_replica(self, place: int) -> bool:
        """Return whether another replica of the prompt would help to decide."""
        test = self._tests[place]
        if test is None:
            return False
        stop = self.stop_prompt(place)
        return stop.outcome in ("error", "unproven") and stop.used < test.limit

    def is_newly_decided(self) -> bool:
        """Return whether every prompt is decided now, and was not at the previous call."""
        if self._is_decided or any(self.needs_replica(place) for place in range(len(self.expected))):
            return False
        self._is_decided = True
        return True

    def _decide_prompt(self, place: int, how: Aggregation) -> tuple[Outcome, int, int]:
        stop = self.stop_prompt(place)
        return stop.outcome, stop.passes, stop.fails

    def _iter_stops(self) -> Iterator[tuple[int, StopResult]]:
        for place, test in enumerate(self._tests):
            if test is not None:
                yield place, self.stop_prompt(place)

    def _find_reason(self, outcome: Outcome, prompts: int) -> CellCause:
        limits = [one.used for _, one in self._iter_stops() if one.at_limit]
        if outcome == "pass":
            return (
                CellCause(f"passed at the limit of {max(limits)} replicas", "passed-at-limit") if limits else NO_REASON
            )
        if ordered := self._sort_causes(outcome, prompts):
            return ordered[0][1]
        missing = [(one.used, self.expected[place]) for place, one in self._iter_stops() if self.needs_replica(place)]
        used, most = missing[0] if missing else (0, 0)
        return CellCause(f"undecided after {used} of at most {most} replicas: the next replica did not run", "not-run")
