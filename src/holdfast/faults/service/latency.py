"""latency: every answer of a service is delayed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.model.delivery import Lag
from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class Latency:
    """Delays every answer on the connection."""

    delay_ms: Annotated[int, Meta(description="The delay in ms.", ge=0)] = 1_000
    jitter_ms: Annotated[int, Meta(description="Random variation of the delay in ms, up or down.", ge=0)] = 0

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(HuntUse(rung=Rung.SLOW, settings={"delay_ms": 300}),), delivers="lags", harmless=True
    )

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)
        if not self.delay_ms and not self.jitter_ms:
            return reply
        lag = Lag(self.delay_ms, self.jitter_ms, ctx.rng.getrandbits(32))
        return replace(reply, delivery=replace(reply.delivery, lags=(*reply.delivery.lags, lag)))
