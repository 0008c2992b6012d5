"""Whether the agent ran into a fault of files: done is not felt, and one that touches no file is not to be credited."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Literal

from holdfast.errors import OutsideError
from holdfast.protocols.fault import FaultContext
from holdfast.protocols.sandbox import FileHazard, WatchingSandbox
from holdfast.protocols.world import World
from holdfast.protocols.world_fault import FELT

UNSEEN = "whether the agent ran into it cannot be seen here: no system call on its files is told to Holdfast"
UNTOUCHED = "the agent touched nothing of it"


async def watch(
    world: World,
    ctx: FaultContext,
    kind: Literal["gone", "denied", "read_only", "full"],
    path: str = ".",
    *,
    spared: Iterable[str] = (),
) -> None:
    """Asks for it to be watched, before anything is done; `spared` are paths below that were so already."""
    if not isinstance(world.sandbox, WatchingSandbox):
        return
    real = _real(world, path, itself=kind == "gone")
    if real is not None:
        moved = tuple(os.path.normpath(f"{real}/{os.path.relpath(one, path)}") for one in spared)
        ctx.memory[FELT] = await world.sandbox.watch(FileHazard(kind, real, moved))


def untouched(ctx: FaultContext) -> str:
    """Why a fault of files was not met; empty if a call of the agent failed for it."""
    felt: Callable[[], bool] | None = ctx.memory.get(FELT)
    if felt is None:
        return UNSEEN
    return "" if felt() else UNTOUCHED


def _real(world: World, path: str, *, itself: bool) -> str | None:
    """The path without links, but for one that is at its end and is meant itself."""
    folder, name = os.path.split(os.path.normpath(path)) if itself else (path, "")
    try:
        found = world.sandbox.find(folder or ".")
    except OutsideError:
        return None
    return None if found is None else os.path.normpath(f"{os.path.relpath(found, world.sandbox.view())}/{name}")
