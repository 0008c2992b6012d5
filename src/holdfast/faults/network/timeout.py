"""timeout: no data arrives, then the connection closes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.protocols.fault import MET_WAIT, Call, FaultContext, FaultTraits, Forward, Reply, TimedOut


@dataclass(frozen=True)
class Timeout:
    """Passes no data, then closes the connection. Nothing reaches the other side."""

    delay_ms: Annotated[int, Meta(description="The time until it closes, in ms; 0: never.", ge=0)] = 0

    traits: ClassVar[FaultTraits] = FaultTraits(
        reached="never",
        met=MET_WAIT,
        see=("invariants.retries_within", "invariants.recovers_within_ms", "invariants.latency"),
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        if self.delay_ms == 0:
            raise TimedOut(f"{call.target}: no data passes", kind="hang")
        ctx.waiting = "a hang"
        await ctx.sleep(self.delay_ms)
        raise TimedOut(f"{call.target}: no data passed for {self.delay_ms} ms, then the connection closed")
