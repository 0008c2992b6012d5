"""vanished: a file is removed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.faults.world.files import below, command_on, part_problems, touch, watch, why_not_hit
from holdfast.protocols.fault import FaultContext, FaultTraits
from holdfast.protocols.world import World


@dataclass(frozen=True)
class Vanished:
    """Removes a file or folder of the workspace."""

    path: Annotated[str, Meta(description="A path in the workspace.", min_length=1, examples=["notes.txt"])]

    traits: ClassVar[FaultTraits] = FaultTraits(
        disturbs="paths", met="A system call of the agent failed because the path is gone."
    )

    def problems(self) -> Iterable[tuple[str, str]]:
        return part_problems(self.path)

    async def disturb(self, world: World, ctx: FaultContext) -> str:
        paths = below(world, self.path, links=True)
        if not paths:
            return ""
        await touch(world, ctx, paths, lambda change: change.op == "deleted")
        await watch(world, ctx, "gone", self.path)
        await command_on(world, ctx, ("rm", "-rf"), [self.path])
        return f"{self.path}: gone"

    def unmet(self, world: World, ctx: FaultContext) -> str:
        return why_not_hit(world, ctx)
