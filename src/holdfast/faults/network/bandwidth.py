"""bandwidth: a slow connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.protocols.fault import MET_SIZE, Call, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class Bandwidth:
    """Sends the reply slowly."""

    rate: Annotated[int, Meta(description="kB per second.", ge=1)] = 10

    traits: ClassVar[FaultTraits] = FaultTraits(delivers="rate", harmless=True, met=MET_SIZE)

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)
        delivery = reply.delivery
        if delivery.size == 0:
            return reply
        rate = self.rate * 1000.0
        return replace(reply, delivery=replace(delivery, rate=min(rate, delivery.rate or rate)))
