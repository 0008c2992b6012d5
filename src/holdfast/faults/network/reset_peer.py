"""reset_peer: the connection is reset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.protocols.fault import MET_LOSS, Call, Dropped, FaultContext, FaultTraits, Forward, HuntUse, Reply, Rung


@dataclass(frozen=True)
class ResetPeer:
    """Resets the connection (TCP RST). Nothing reaches the other side."""

    delay_ms: Annotated[int, Meta(description="The delay before the reset, in ms.", ge=0)] = 0

    traits: ClassVar[FaultTraits] = FaultTraits(hunted=(HuntUse(rung=Rung.ERROR_ONCE),), reached="never", met=MET_LOSS)

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        await ctx.sleep(self.delay_ms)
        raise Dropped(f"{call.target}: connection reset by peer")
