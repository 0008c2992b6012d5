"""frozen: the clock is frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.faults.met import CLOCK
from holdfast.faults.world.clock import clocked, set_clock, why_unread
from holdfast.protocols.fault import FaultContext, FaultTraits
from holdfast.protocols.world import World


@dataclass(frozen=True)
class Frozen:
    """Stops the agent's clock; waiting still takes real time."""

    traits: ClassVar[FaultTraits] = FaultTraits(disturbs="clock", met=CLOCK)

    async def disturb(self, world: World, ctx: FaultContext) -> str:
        await set_clock(world, ctx, clocked(world).time(), frozen=True)
        return "the clock is frozen"

    def unmet(self, world: World, ctx: FaultContext) -> str:
        return why_unread(world, ctx)
