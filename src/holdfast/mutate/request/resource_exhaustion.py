"""Bodies that are cheap to send and dear to read: deep, wide, packed. At most 1 MB, 20 MB unpacked."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from holdfast.model.task import RequestChange
from holdfast.mutate.request.variants import MakeChange, RequestMutator, fixed


def _of_size(body: str, sizes: Sequence[int], encoding: str = "") -> MakeChange:
    headers = (("Content-Encoding", encoding),) if encoding else ()

    def make(rng: Random, canary: str) -> RequestChange:
        return RequestChange("", body=body, size=rng.choice(sizes), headers=headers)

    return make


RESOURCE_EXHAUSTION = RequestMutator(
    "resource_exhaustion",
    {
        "nested_lists": _of_size("nested_lists", (2_000, 20_000, 100_000)),
        "nested_objects": _of_size("nested_objects", (2_000, 20_000, 100_000)),
        "long_list": _of_size("array", (100_000, 400_000)),
        "many_keys": _of_size("fields", (10_000, 50_000)),
        "gzip_bomb": _of_size("gzip", (5_000_000, 20_000_000), "gzip"),
        "long_number": _of_size("long_number", (5_000, 50_000)),
        "long_string": _of_size("long_string", (500_000, 1_000_000)),
        "deflate_bomb": _of_size("deflate", (5_000_000, 20_000_000), "deflate"),
        "entities": fixed(headers=(("Content-Type", "application/xml"),), body="entities", size=6),
    },
)
