"""permission: a file that cannot be read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.faults.world.files import (
    check_path,
    explain_no_hit,
    find_path,
    read_mode,
    remove_permissions,
    restore_permissions,
    watch_path,
)
from holdfast.protocols.fault import FaultContext, FaultTraits
from holdfast.protocols.world import World


@dataclass(frozen=True)
class Permission:
    """Makes a file or folder of the workspace unreadable and unwritable."""

    path: Annotated[str, Meta(description="A path in the workspace.", min_length=1, examples=["data"])]

    traits: ClassVar[FaultTraits] = FaultTraits(disturbs="paths", met="The agent could not open, list or enter it.")

    def problems(self) -> Iterable[tuple[str, str]]:
        return check_path(self.path)

    async def disturb(self, world: World, ctx: FaultContext) -> str:
        if find_path(world, self.path) is None:
            return ""
        spared = () if (read_mode(world, self.path) or 0) & 0o777 else (self.path,)
        await watch_path(world, ctx, "denied", self.path, spared=spared)
        await remove_permissions(world, ctx, [self.path], "000", "-r")
        return f"{self.path}: permission denied"

    unmet = staticmethod(explain_no_hit)

    heal = staticmethod(restore_permissions)
