"""latency: every reply is delayed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.protocols.fault import MET_WAIT, Call, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class Latency:
    """Delays the reply; the request is sent immediately."""

    delay_ms: Annotated[int, Meta(description="The delay in ms.", ge=0)] = 1_000
    jitter_ms: Annotated[int, Meta(description="Random variation of the delay in ms, up or down.", ge=0)] = 0

    traits: ClassVar[FaultTraits] = FaultTraits(harmless=True, met=MET_WAIT)

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)
        jitter = ctx.rng.uniform(-self.jitter_ms, self.jitter_ms) if self.jitter_ms else 0.0
        await ctx.sleep(max(0.0, self.delay_ms + jitter))
        return reply
