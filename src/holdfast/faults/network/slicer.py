"""slicer: data arrives in small pieces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from holdfast.model.delivery import Slices
from holdfast.protocols.fault import MET_SIZE, Call, FaultContext, FaultTraits, Forward, Reply


@dataclass(frozen=True)
class Slicer:
    """Sends the reply in small pieces, optionally with a pause after each."""

    average_size: Annotated[int, Meta(description="The average size of a piece, in bytes.", ge=1)] = 64
    size_variation: Annotated[int, Meta(description="Random variation of the size, up or down.", ge=0)] = 0
    delay_ms: Annotated[int, Meta(description="The pause after a piece, in ms.", ge=0)] = 0

    traits: ClassVar[FaultTraits] = FaultTraits(delivers="slices", harmless=True, met=MET_SIZE)

    async def apply(self, call: Call, forward: Forward, ctx: FaultContext) -> Reply:
        reply = await forward(call)
        size = reply.delivery.size
        if size is not None and size <= max(1, self.average_size - self.size_variation):
            return reply
        seed = ctx.rng.getrandbits(32)
        slices = Slices(self.average_size, self.size_variation, self.delay_ms, seed)
        return replace(reply, delivery=replace(reply.delivery, slices=slices))
