"""disk_full: no space is left on the disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.errors import HarnessError
from holdfast.faults.world.files import explain_no_hit, forget_changes, record_changes, run_command, watch_path
from holdfast.model.capabilities import DISK
from holdfast.protocols.fault import FaultContext, FaultTraits
from holdfast.protocols.world import World

BALLAST = ".holdfast-ballast"
"""A file that fills the disk; it is removed when the agent has ended."""


@dataclass(frozen=True)
class DiskFull:
    """Fills the workspace: nothing more can be written. Needs `resources.disk`."""

    traits: ClassVar[FaultTraits] = FaultTraits(disturbs="disk", met="A write of the agent did not fit.")

    async def disturb(self, world: World, ctx: FaultContext) -> str:
        limited = next((feature for feature in world.sandbox.isolation if feature.feature == DISK), None)
        # Without a limit the disk is a large part of the memory.
        if limited is None or not limited.enforced or limited.why:
            why = limited.why if limited is not None else "this sandbox has none"
            raise HarnessError(
                f"disk_full needs a limit on the workspace's disk, which is not enforced here: {why}",
                code="fault-impossible",
            )
        await record_changes(world, ctx, [BALLAST], lambda change: True)
        await watch_path(world, ctx, "full")
        ran = await run_command(
            world, ctx, "dd", "if=/dev/zero", f"of={BALLAST}", "bs=64k", "oflag=append", "conv=notrunc"
        )
        if b"No space left" not in ran.stderr:
            message = ran.stderr.decode("utf-8", "replace").strip()[-300:]
            raise HarnessError(f"the workspace's disk could not be filled: {message}", code="fault-impossible")
        await run_command(world, ctx, "dd", "if=/dev/zero", f"of={BALLAST}", "bs=1", "oflag=append", "conv=notrunc")
        return "no space left on the disk"

    unmet = staticmethod(explain_no_hit)

    async def heal(self, world: World, ctx: FaultContext) -> None:
        forget_changes(ctx)
        await run_command(world, ctx, "rm", "-f", "--", BALLAST)
