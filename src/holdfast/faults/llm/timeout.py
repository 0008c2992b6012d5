"""timeout: the model does not answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.protocols.fault import MET_WAIT, Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung, TimedOut


@dataclass(frozen=True)
class Timeout:
    """Lets the call hang, then fails it with a timeout error."""

    delay_ms: Annotated[int, Meta(description="How long the call hangs, in milliseconds.", ge=0)] = 10_000

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(HuntUse(rung=Rung.HANG, settings={"delay_ms": 1000}),),
        met=MET_WAIT,
        see=("invariants.retries_within", "invariants.recovers_within_ms", "invariants.latency"),
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        ctx.waiting = "a hang"
        await ctx.sleep(self.delay_ms)
        raise TimedOut(f"{call.target}: the model did not answer within {self.delay_ms} ms")
