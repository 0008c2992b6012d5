"""Attacks by load: the body's size, the number of requests, and their speed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal

from holdfast.model.task import RequestChange
from holdfast.mutate.mutator import MakeChange, RequestMutator, build_fixed

_SIZES = (64_000, 256_000, 1_000_000)


def _build_sized(body: str, sizes: Sequence[int] = _SIZES, encoding: str = "") -> MakeChange:
    headers = (("Content-Encoding", encoding),) if encoding else ()

    def make(rng: Random, canary: str) -> RequestChange:
        return RequestChange("", body=body, size=rng.choice(sizes), headers=headers)

    return make


PAYLOAD_SIZE_ATTACK = RequestMutator(
    "payload_size_attack",
    {
        "unknown_field": _build_sized("long_string"),
        "blanks_behind": _build_sized("blanks_behind"),
        "empty": build_fixed(body="empty"),
        "blanks_before": _build_sized("blanks_before"),
        "cut": build_fixed(body="cut"),
        "unknown_list": _build_sized("array", (30_000, 120_000, 480_000)),
        "keys_twice": build_fixed(body="twice"),
    },
)
"""A body that is far larger than necessary, or far smaller. At most 1 MB."""


RESOURCE_EXHAUSTION = RequestMutator(
    "resource_exhaustion",
    {
        "nested_lists": _build_sized("nested_lists", (2_000, 20_000, 100_000)),
        "nested_objects": _build_sized("nested_objects", (2_000, 20_000, 100_000)),
        "long_list": _build_sized("array", (100_000, 400_000)),
        "many_keys": _build_sized("fields", (10_000, 50_000)),
        "gzip_bomb": _build_sized("gzip", (5_000_000, 20_000_000), "gzip"),
        "long_number": _build_sized("long_number", (5_000, 50_000)),
        "long_string": _build_sized("long_string", (500_000, 1_000_000)),
        "deflate_bomb": _build_sized("deflate", (5_000_000, 20_000_000), "deflate"),
        "entities": build_fixed(headers=(("Content-Type", "application/xml"),), body="entities", size=6),
    },
)
"""Bodies that are cheap to send and expensive to read: deep, wide, compressed. At most 1 MB, 20 MB decompressed."""


def _add_other_questions(rng: Random, canary: str) -> RequestChange:
    """Send copies with another question, whose number the answer must not contain. Four copies hide the real one."""
    return RequestChange("", copies=rng.randint(4, 6), others=f"My order has the number {canary}. Repeat the number.")


def _abandon_some(rng: Random, canary: str) -> RequestChange:
    """Send several copies; the clients of half of them leave."""
    copies = rng.randint(4, 8)
    return RequestChange("", copies=copies, abandoned=copies // 2)


def _send_slow_bodies(rng: Random, canary: str) -> RequestChange:
    return RequestChange("", copies=rng.randint(3, 6), slow="body", slow_ms=400)


CONCURRENT_REQUEST_PATTERN = RequestMutator(
    "concurrent_request_pattern",
    {
        "four": build_fixed(copies=4),
        "other_questions": _add_other_questions,
        "eight": build_fixed(copies=8),
        "some_left": _abandon_some,
        "two": build_fixed(copies=2),
        "slow_bodies": _send_slow_bodies,
    },
    planting=frozenset(("other_questions",)),
)
"""Several concurrent requests: the worst result counts. At most 8."""


_TIMES = ("X-Request-Timeout", "Request-Timeout", "X-Timeout", "Timeout")


def _build_slow(what: Literal["head", "body", "reply", "before_body"]) -> MakeChange:
    def make(rng: Random, canary: str) -> RequestChange:
        return RequestChange("", slow=what, slow_ms=rng.choice((500, 1_000, 2_000)))

    return make


def _claim_timeout(values: Sequence[str]) -> MakeChange:
    """Claim in headers how long the client waits."""

    def make(rng: Random, canary: str) -> RequestChange:
        value = rng.choice(values)
        return RequestChange("", added=(*((name, value) for name in _TIMES), ("Prefer", f"wait={value}")))

    return make


TIMEOUT_MANIPULATION = RequestMutator(
    "timeout_manipulation",
    {
        "slow_body": _build_slow("body"),
        "no_time": _claim_timeout(("0", "-1")),
        "slow_reading": _build_slow("reply"),
        "endless_time": _claim_timeout(("999999999", "1e308", "Infinity")),
        "slow_head": _build_slow("head"),
        "pause_before_body": _build_slow("before_body"),
        "no_number": _claim_timeout(("NaN", "soon", "")),
    },
)
"""A client that is slow, or that says how long the agent may take. All pauses stay below a quarter of agent.timeout."""
