"""cpu_throttle: a slow machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.faults.world.processes import begin_count, explain_no_limit_hit, require_disturbable
from holdfast.protocols.fault import FaultContext, FaultTraits
from holdfast.protocols.world import World


@dataclass(frozen=True)
class CpuThrottle:
    """Limits all processes of the agent to part of a core."""

    cores: Annotated[float, Meta(description="The part of a core.", gt=0)] = 0.1

    traits: ClassVar[FaultTraits] = FaultTraits(
        disturbs="limits", met="The control group counts a period in which the agent was throttled."
    )

    async def disturb(self, world: World, ctx: FaultContext) -> str:
        if self.cores >= (os.cpu_count() or 1):
            return ""  # the machine has no more than that
        begin_count(world, ctx, "cpu")
        await require_disturbable(world).limit(cpu=self.cores)
        return f"{self.cores:g} of a core"

    def unmet(self, world: World, ctx: FaultContext) -> str:
        """Return why it was not met: the processes were never throttled."""
        return explain_no_limit_hit(world, ctx, "cpu")
