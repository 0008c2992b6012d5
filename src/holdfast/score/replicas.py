"""The replicas of a case combined: how many must pass, or what the mean of their composites is. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from holdfast.model.score import Replica, Status
from holdfast.model.spec import Scoring
from holdfast.model.verdict import CauseKey
from holdfast.score.combine import needed, settle
from holdfast.score.composite import SLACK


class CaseResult(NamedTuple):
    """What replicas come to, and why if that is no pass."""

    status: Status
    reason: str = ""
    causes: tuple[CauseKey, ...] = ()


def first_reason(replicas: Iterable[Replica], status: str) -> tuple[str, tuple[CauseKey, ...]]:
    """Of the first replica that came to this status: why, in words and as values."""
    return next(((one.reason, one.causes) for one in replicas if one.status == status), ("", ()))


def mean(replicas: Sequence[Replica]) -> float | None:
    """Of their composites; None if one has none."""
    known = [one.composite for one in replicas if one.composite is not None]
    return sum(known) / len(known) if known and len(known) == len(replicas) else None


def settled(replicas: Sequence[Replica], expected: int, scoring: Scoring) -> CaseResult:
    """The status of which nothing that is undecided or missing could make another, and why it is no pass."""
    how, threshold = scoring.replica_aggregation, scoring.pass_threshold
    count = {status: sum(one.status == status for one in replicas) for status in ("pass", "fail", "error")}
    if how.kind == "mean":
        return _mean(replicas, expected, 1.0 if threshold is None else threshold)
    outcome = settle(count["pass"], count["fail"], count["error"], expected, needed(how, expected))
    if outcome == "pass":
        return CaseResult("pass")
    first, causes = first_reason(replicas, outcome)
    if outcome == "fail":
        shown = f"{count['pass']} of {expected} replicas passed: {first}" if expected > 1 else first
        return CaseResult("fail", shown, causes)
    if first:
        return CaseResult("error", first, causes)
    return CaseResult("error", f"{expected - len(replicas)} of {expected} replicas did not run", _NOT_RUN)


def _mean(replicas: Sequence[Replica], expected: int, threshold: float) -> CaseResult:
    """The mean of the composites against the threshold; an unknown one leaves it open unless it cannot matter."""
    known = [one.composite for one in replicas if one.composite is not None]
    low, high = sum(known) / expected, (sum(known) + expected - len(known)) / expected
    if low >= threshold - SLACK:
        return CaseResult("pass")
    if high < threshold - SLACK:
        first, causes = next(((one.reason, one.causes) for one in replicas if one.reason), ("", ()))
        value = high if len(known) < expected else low
        return CaseResult("fail", f"the mean composite is {value:.3f}, below {threshold:g}: {first}", causes)
    reason, causes = first_reason(replicas, "error")
    return CaseResult("error", reason or "not every replica ran", causes or _NOT_RUN)


_NOT_RUN = (CauseKey("", "not-run"),)
