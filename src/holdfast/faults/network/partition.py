"""partition: the other side is unreachable, without an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.protocols.fault import MET_WAIT, Call, FaultContext, FaultTraits, Forward, Reply, TimedOut


@dataclass(frozen=True)
class Partition:
    """Passes nothing on and closes nothing: the caller waits until it gives up."""

    traits: ClassVar[FaultTraits] = FaultTraits(reached="never", met=MET_WAIT)

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        raise TimedOut(f"{call.target}: nothing passes", kind="hang")
