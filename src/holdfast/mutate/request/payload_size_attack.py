"""A body that is far larger than it need be, or far smaller. At most 1 MB."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from holdfast.model.task import RequestChange
from holdfast.mutate.request.variants import MakeChange, RequestMutator, fixed

_SIZES = (64_000, 256_000, 1_000_000)


def _of_size(body: str, sizes: Sequence[int] = _SIZES) -> MakeChange:
    def make(rng: Random, canary: str) -> RequestChange:
        return RequestChange("", body=body, size=rng.choice(sizes))

    return make


PAYLOAD_SIZE_ATTACK = RequestMutator(
    "payload_size_attack",
    {
        "unknown_field": _of_size("long_string"),
        "blanks_behind": _of_size("blanks_behind"),
        "empty": fixed(body="empty"),
        "blanks_before": _of_size("blanks_before"),
        "cut": fixed(body="cut"),
        "unknown_list": _of_size("array", (30_000, 120_000, 480_000)),
        "keys_twice": fixed(body="twice"),
    },
)
