"""skew: the clock is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.faults.world.clock import explain_unread_clock, require_clock, set_clock
from holdfast.protocols.fault import MET_CLOCK, FaultContext, FaultTraits
from holdfast.protocols.world import World


@dataclass(frozen=True)
class Skew:
    """Offsets the agent's clock."""

    offset_s: Annotated[float, Meta(description="Seconds that it is ahead; negative: behind.")] = 300.0

    traits: ClassVar[FaultTraits] = FaultTraits(disturbs="clock", met=MET_CLOCK)

    async def disturb(self, world: World, ctx: FaultContext) -> str:
        clock = require_clock(world)
        if not self.offset_s:
            return ""
        await set_clock(world, ctx, clock.time() + self.offset_s)
        return f"the clock is {abs(self.offset_s):g} s {'ahead' if self.offset_s > 0 else 'behind'}"

    unmet = staticmethod(explain_unread_clock)
