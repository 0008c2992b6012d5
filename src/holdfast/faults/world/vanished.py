"""vanished: a file is removed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.faults.world.files import check_path, explain_no_hit, list_below, record_changes, run_on_paths, watch_path
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
        return check_path(self.path)

    async def disturb(self, world: World, ctx: FaultContext) -> str:
        paths = list_below(world, self.path, links=True)
        if not paths:
            return ""
        await record_changes(world, ctx, paths, lambda change: change.op == "deleted")
        await watch_path(world, ctx, "gone", self.path)
        await run_on_paths(world, ctx, ("rm", "-rf"), [self.path])
        return f"{self.path}: gone"

    unmet = staticmethod(explain_no_hit)
