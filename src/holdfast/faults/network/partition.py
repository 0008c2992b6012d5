"""partition: the other side cannot be reached, and nothing says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from holdfast.protocols import Call, FaultContext, Forward, Reply, TimedOut


@dataclass(frozen=True)
class Partition:
    """Nothing passes and nothing is closed: the caller waits until it gives up."""

    reached: ClassVar[Literal["never", "always", "maybe"]] = "never"

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise TimedOut(f"{call.target}: nothing passes", kind="hang")
