"""Verdicts to outcomes, three-valued: decided only if no undecided verdict could have changed it."""

from __future__ import annotations

from math import ceil

from holdfast.model.spec import Aggregation
from holdfast.model.verdict import Outcome

_SLACK = 1e-9
"""0.8 of 5 is 4, also in floating point."""


def needed(how: Aggregation, n: int) -> int:
    """How many of n replicas must pass."""
    value = how.value or 0.0
    match how.kind:
        case "all":
            return n
        case "any":
            return min(1, n)
        case "majority":
            return n // 2 + 1
        case "at_least":
            # A part of the replicas may have been selected: then all of these.
            return min(int(value), n)
        case "rate":
            return min(n, ceil(value * n - _SLACK))
        case "mean":
            raise ValueError("mean combines composites, not verdicts")


def settle(passes: int, fails: int, errors: int, n: int, need: int) -> Outcome:
    """The outcome of one prompt of which n verdicts are expected and `need` must pass."""
    if passes >= need:
        return "pass"
    if n - fails < need:
        return "fail"
    return "error" if errors else "unproven"
