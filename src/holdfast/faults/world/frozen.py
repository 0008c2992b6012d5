"""frozen: the clock is frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.faults.world.clock import explain_unread_clock, require_clock, set_clock
from holdfast.protocols.fault import MET_CLOCK, FaultContext, FaultTraits
from holdfast.protocols.world import World


@dataclass(frozen=True)
class Frozen:
    """Stops the agent's clock; waiting still takes real time."""

    traits: ClassVar[FaultTraits] = FaultTraits(disturbs="clock", met=MET_CLOCK)

    async def disturb(self, world: World, ctx: FaultContext) -> str:
        await set_clock(world, ctx, require_clock(world).time(), frozen=True)
        return "the clock is frozen"

    unmet = staticmethod(explain_unread_clock)
