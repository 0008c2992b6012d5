"""slow_close: all data arrives, but the connection is closed late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.protocols.fault import Call, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class SlowClose:
    """Sends all bytes immediately, but closes the connection late."""

    delay_ms: Annotated[int, Meta(description="The delay of the end, in ms.", ge=0)] = 1_000

    traits: ClassVar[FaultTraits] = FaultTraits(delivers="close_ms", harmless=True)

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)
        delivery = reply.delivery
        return replace(reply, delivery=replace(delivery, close_ms=delivery.close_ms + self.delay_ms))
