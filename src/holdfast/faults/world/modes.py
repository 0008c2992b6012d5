"""Permissions taken away and given back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from holdfast.errors import HarnessError
from holdfast.faults.world.inside import allowed, command_on, footprint, found, mode_of, shown, touch, untouch
from holdfast.protocols.fault import FaultContext
from holdfast.protocols.sandbox import FileChange
from holdfast.protocols.world import World

_MODES = "modes"


async def take(world: World, ctx: FaultContext, paths: Sequence[str], change: str, tried: str) -> None:
    """Changes permissions, and makes sure that it binds the agent: `tried` is what it must not be able to do."""
    modes = ctx.memory.setdefault(_MODES, {})
    modes |= {path: mode for path in paths if (mode := mode_of(world, path)) is not None}
    left: dict[str, tuple[int, int] | None] = {}

    def stands(seen: FileChange) -> bool:
        return seen.path in left and footprint(world, seen.path) == left[seen.path]

    await touch(world, ctx, paths, stands)
    await command_on(world, ctx, ("chmod", change), list(reversed(paths)))  # what is in a folder before the folder
    left |= {shown(path): footprint(world, path) for path in paths}
    if await allowed(world, ctx, tried, paths[0]):
        await give_back(world, ctx)
        raise HarnessError("permissions do not bind the agent here: it runs as root. Use the bubblewrap backend")


async def give_back(world: World, ctx: FaultContext) -> None:
    """The permissions as they were, of what is still there."""
    untouch(ctx)
    modes: dict[str, int] = ctx.memory.pop(_MODES, {})
    by_mode: dict[int, list[str]] = defaultdict(list)
    for path, mode in modes.items():
        if found(world, path) is not None:
            by_mode[mode].append(path)
    for mode, paths in by_mode.items():
        await command_on(world, ctx, ("chmod", f"{mode:o}"), paths)
