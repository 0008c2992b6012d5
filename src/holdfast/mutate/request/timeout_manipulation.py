"""A client that is slow, or that says how long the agent may take. All pauses stay below a quarter of agent.timeout."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal

from holdfast.model.task import RequestChange
from holdfast.mutate.request.variants import MakeChange, RequestMutator

_TIMES = ("X-Request-Timeout", "Request-Timeout", "X-Timeout", "Timeout")


def _slow(what: Literal["head", "body", "reply", "before_body"]) -> MakeChange:
    def make(rng: Random, canary: str) -> RequestChange:
        return RequestChange("", slow=what, slow_ms=rng.choice((500, 1_000, 2_000)))

    return make


def _claimed(values: Sequence[str]) -> MakeChange:
    """The client's own words on how long it waits."""

    def make(rng: Random, canary: str) -> RequestChange:
        value = rng.choice(values)
        return RequestChange("", added=(*((name, value) for name in _TIMES), ("Prefer", f"wait={value}")))

    return make


TIMEOUT_MANIPULATION = RequestMutator(
    "timeout_manipulation",
    {
        "slow_body": _slow("body"),
        "no_time": _claimed(("0", "-1")),
        "slow_reading": _slow("reply"),
        "endless_time": _claimed(("999999999", "1e308", "Infinity")),
        "slow_head": _slow("head"),
        "pause_before_body": _slow("before_body"),
        "no_number": _claimed(("NaN", "soon", "")),
    },
)
