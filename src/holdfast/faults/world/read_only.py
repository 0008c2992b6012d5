"""read_only: files that cannot be written to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.faults.world.files import (
    explain_no_hit,
    list_below,
    read_mode,
    remove_permissions,
    restore_permissions,
    watch_path,
)
from holdfast.protocols.fault import FaultContext, FaultTraits
from holdfast.protocols.world import World
from holdfast.reading.file import find_path_problem


@dataclass(frozen=True)
class ReadOnly:
    """Makes a file or folder unwritable."""

    path: Annotated[str, Meta(description="A path in the workspace; default: all of it.", min_length=1)] = "."

    traits: ClassVar[FaultTraits] = FaultTraits(
        disturbs="paths",
        met="The agent could not open for writing, create, move or remove something.",
    )

    def problems(self) -> Iterable[tuple[str, str]]:
        return find_path_problem(self.path)

    async def disturb(self, world: World, ctx: FaultContext) -> str:
        paths = list_below(world, self.path)
        if not paths:
            return ""
        spared = [path for path in paths if not (read_mode(world, path) or 0) & 0o222]
        await watch_path(world, ctx, "read_only", self.path, spared=spared)
        await remove_permissions(world, ctx, paths, "a-w", "-w")
        return f"{self.path}: read-only"

    unmet = staticmethod(explain_no_hit)

    heal = staticmethod(restore_permissions)
