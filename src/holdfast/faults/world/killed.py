"""killed: the agent is killed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.faults.world.processes import require_disturbable
from holdfast.protocols.fault import FaultContext, FaultTraits, HuntUse, Rung
from holdfast.protocols.world import World
from holdfast.protocols.world_fault import AFTER_WRITE, RESTART


@dataclass(frozen=True)
class Killed:
    """Kills every process of the agent (SIGKILL), starts it again and repeats the last turn."""

    restart: Annotated[bool, Meta(description="Whether to start the agent again.")] = True

    traits: ClassVar[FaultTraits] = FaultTraits(
        hunted=(HuntUse(rung=Rung.KILLED, writes=True),),
        met="A process of the agent died.",
        see=("invariants.side_effect_once",),
        needs_running=True,
    )

    async def disturb(self, world: World, ctx: FaultContext) -> str:
        # An agent that ends right after the write may be faster than the signal. Its answer is then lost on the
        # way, so that the result does not depend on which of them is faster.
        if not await require_disturbable(world).kill() and not ctx.memory.get(AFTER_WRITE):
            return ""
        ctx.memory[RESTART] = self.restart
        return f"the agent was killed{' and started again' if self.restart else ''}"
