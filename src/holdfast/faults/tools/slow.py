"""slow: the real reply, delayed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.protocols.fault import MET_WAIT, Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class Slow:
    """Delays the call, then returns the real reply."""

    delay_ms: Annotated[int, Meta(description="The delay before the call, in milliseconds.", ge=0)] = 2000

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(HuntUse(rung=Rung.SLOW, settings={"delay_ms": 300}),), harmless=True, on_results=False, met=MET_WAIT
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        await ctx.sleep(self.delay_ms)
        return await forward(call)
