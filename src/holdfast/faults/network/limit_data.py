"""limit_data: the connection closes after a number of bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.protocols.fault import MET_SIZE, Call, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class LimitData:
    """Closes the connection after some bytes of the body. A shorter reply is not hit."""

    bytes: Annotated[int, Meta(description="The number of bytes that arrive.", ge=0)] = 1_024

    traits: ClassVar[FaultTraits] = FaultTraits(delivers="limit", met=MET_SIZE)

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)
        delivery = reply.delivery
        before = delivery.size if delivery.limit is None else delivery.limit
        if before is not None and before <= self.bytes:
            return reply
        return replace(reply, delivery=replace(delivery, limit=self.bytes))
