"""Several requests concurrently: the worst of them is what counts. At most 8."""

from __future__ import annotations

from random import Random

from holdfast.model.task import RequestChange
from holdfast.mutate.request.variants import RequestMutator, fixed


def _other_questions(rng: Random, canary: str) -> RequestChange:
    """The number of the others must not be in our answer. From four on, ours is not in the middle."""
    return RequestChange("", copies=rng.randint(4, 6), others=f"My order has the number {canary}. Repeat the number.")


def _some_left(rng: Random, canary: str) -> RequestChange:
    """Clients that ask and go away."""
    copies = rng.randint(4, 8)
    return RequestChange("", copies=copies, abandoned=copies // 2)


def _slow_bodies(rng: Random, canary: str) -> RequestChange:
    return RequestChange("", copies=rng.randint(3, 6), slow="body", slow_ms=400)


CONCURRENT_REQUEST_PATTERN = RequestMutator(
    "concurrent_request_pattern",
    {
        "four": fixed(copies=4),
        "other_questions": _other_questions,
        "eight": fixed(copies=8),
        "some_left": _some_left,
        "two": fixed(copies=2),
        "slow_bodies": _slow_bodies,
    },
    planting=frozenset(("other_questions",)),
)
