"""memory_limit: little memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.faults.world.processes import begin_count, explain_no_limit_hit, require_disturbable
from holdfast.protocols.fault import FaultContext, FaultTraits
from holdfast.protocols.world import World


@dataclass(frozen=True)
class MemoryLimit:
    """Limits the memory of all processes of the agent."""

    megabytes: Annotated[int, Meta(description="The limit in MiB.", ge=1)] = 64

    traits: ClassVar[FaultTraits] = FaultTraits(
        disturbs="limits", met="The control group counts a refusal, or the kernel killed a program for exceeding it."
    )

    async def disturb(self, world: World, ctx: FaultContext) -> str:
        if self.megabytes >= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024**2:
            return ""  # the machine has no more than that
        begin_count(world, ctx, "memory")
        await require_disturbable(world).limit(memory=self.megabytes * 1024 * 1024)
        return f"{self.megabytes} MiB of memory"

    def unmet(self, world: World, ctx: FaultContext) -> str:
        """Return why it was not met: the processes were never refused memory or killed for using too much."""
        return explain_no_limit_hit(world, ctx, "memory")
