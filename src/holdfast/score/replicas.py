"""The replicas of a case combined: how many must pass, or what the mean of their composites is. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.model.score import Replica, Status
from holdfast.model.spec import Scoring
from holdfast.score.combine import needed, settle
from holdfast.score.composite import SLACK


def mean(replicas: Sequence[Replica]) -> float | None:
    """Of their composites; None if one has none."""
    known = [one.composite for one in replicas if one.composite is not None]
    return sum(known) / len(known) if known and len(known) == len(replicas) else None


def settled(replicas: Sequence[Replica], expected: int, scoring: Scoring) -> tuple[Status, str]:
    """The status of which nothing that is undecided or missing could make another, and why it is no pass."""
    how, threshold = scoring.replica_aggregation, scoring.pass_threshold
    count = {status: sum(one.status == status for one in replicas) for status in ("pass", "fail", "error")}
    if how.kind == "mean":
        return _mean(replicas, expected, 1.0 if threshold is None else threshold)
    outcome = settle(count["pass"], count["fail"], count["error"], expected, needed(how, expected))
    if outcome == "pass":
        return "pass", ""
    first = next((one.reason for one in replicas if one.status == outcome), "")
    if outcome == "fail":
        shown = f"{count['pass']} of {expected} replicas passed: {first}" if expected > 1 else first
        return "fail", shown
    return "error", first or f"{expected - len(replicas)} of {expected} replicas did not run"


def _mean(replicas: Sequence[Replica], expected: int, threshold: float) -> tuple[Status, str]:
    """The mean of the composites against the threshold; an unknown one leaves it open unless it cannot matter."""
    known = [one.composite for one in replicas if one.composite is not None]
    low, high = sum(known) / expected, (sum(known) + expected - len(known)) / expected
    if low >= threshold - SLACK:
        return "pass", ""
    if high < threshold - SLACK:
        first = next((one.reason for one in replicas if one.reason), "")
        return (
            "fail",
            f"the mean composite is {high if len(known) < expected else low:.3f}, below {threshold:g}: {first}",
        )
    return "error", next((one.reason for one in replicas if one.status == "error"), "not every replica ran")
