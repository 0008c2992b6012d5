"""What faults of files share: paths and permissions, commands that they run, and whether the agent ran into them.

The agent is not credited with what a fault does: the fault notes in its memory each command that it runs and each path
that it changes, so that the audit leaves them out. A fault that was done is met only if the agent touched the files.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Literal

from holdfast.errors import HarnessError, OutsideError
from holdfast.processes.limits import OWN_COMMAND
from holdfast.protocols.fault import FaultContext
from holdfast.protocols.sandbox import FileChange, FileHazard, Ran, WatchingSandbox
from holdfast.protocols.world import World
from holdfast.protocols.world_fault import FELT, RAN, TOUCHED, Touched
from holdfast.reading.file import outside

_ENVIRON = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", OWN_COMMAND: "1"}
_PATHS_AT_ONCE = 200
_PATHS_MOST = 10_000
_LOOKS = 5
"""How often the workspace is looked at: while an agent writes, a look can fail."""


def part_problems(path: str) -> Iterable[tuple[str, str]]:
    """What is wrong with a path that leaves the workspace, or is all of it."""
    yield from outside(path)
    if path in (".", "./"):
        yield "path", "nothing can run without its workspace: name a file or a folder in it"


def found(world: World, path: str) -> Path | None:
    """The file or folder, for us to look at; None if there is none, or only a link that leads out."""
    try:
        return world.sandbox.find(path)
    except OutsideError:
        return None


def below(world: World, path: str, *, links: bool = False) -> list[str]:
    """The path and all that is in it, as paths of the workspace; links only if wanted."""
    top = found(world, path)
    if top is None:
        return []
    paths = [path]
    for folder, folders, files in os.walk(top):
        at = os.path.normpath(f"{path}/{os.path.relpath(folder, top)}")
        here = [name for name in (*folders, *files) if links or not os.path.islink(f"{folder}/{name}")]
        paths += [os.path.normpath(f"{at}/{name}") for name in here]
        if len(paths) > _PATHS_MOST:
            raise HarnessError(
                f"{path} holds more than {_PATHS_MOST} files: name a smaller part of the workspace",
                code="fault-impossible",
            )
    return paths


def mode_of(world: World, path: str) -> int | None:
    """Permissions as they are."""
    seen = found(world, path)
    return None if seen is None else seen.stat().st_mode & 0o7777


def footprint(world: World, path: str) -> tuple[int, int] | None:
    """What is another as soon as anybody changes the file: nobody can set the time of a change. None if it is gone."""
    seen = found(world, path)
    if seen is None:
        return None
    stat = seen.lstat()
    return stat.st_ino, stat.st_ctime_ns


async def touch(world: World, ctx: FaultContext, paths: Collection[str], stands: Callable[[FileChange], bool]) -> None:
    """Notes, before we change these paths, what the agent did there, and how what we leave is known."""
    import asyncio  # here, since faults are also made where no loop ever runs

    named = {shown(path) for path in paths}
    before = await asyncio.to_thread(_changed, world, named)
    ctx.memory.setdefault(TOUCHED, {}).update({path: Touched(before.get(path), stands) for path in named})


def untouch(ctx: FaultContext) -> None:
    """All is undone: from now on every change is the agent's."""
    ctx.memory.pop(TOUCHED, None)


def shown(path: str) -> str:
    """A path as changes have it."""
    return os.fsencode(os.path.normpath(path)).decode("utf-8", "backslashreplace")


def _changed(world: World, paths: Collection[str]) -> dict[str, FileChange]:
    for _ in range(_LOOKS - 1):
        try:
            return {change.path: change for change in world.changes() if change.path in paths}
        except (HarnessError, OSError):
            continue
    return {change.path: change for change in world.changes() if change.path in paths}


async def command(world: World, ctx: FaultContext, *argv: str) -> Ran:
    """Runs a command of ours in the workspace."""
    ctx.memory.setdefault(RAN, []).append(tuple(argv))
    return await world.sandbox.run(argv, _ENVIRON, timeout_s=60.0)


async def command_on(world: World, ctx: FaultContext, words: Sequence[str], paths: Sequence[str]) -> None:
    """The same for many paths; HarnessError if it fails."""
    for at in range(0, len(paths), _PATHS_AT_ONCE):
        some = [f"./{path}" for path in paths[at : at + _PATHS_AT_ONCE]]
        ran = await command(world, ctx, *words, "--", *some)
        if ran.exit_code != 0:
            said = ran.stderr.decode("utf-8", "replace").strip()[-300:]
            raise HarnessError(
                f"{words[0]} could not be done in the workspace: {said or ran.exit_code}", code="fault-impossible"
            )


async def allowed(world: World, ctx: FaultContext, how: str, path: str) -> bool:
    """Whether the agent may still do this there: `-r` read, `-w` write."""
    return (await command(world, ctx, "test", how, f"./{path}")).exit_code == 0


_MODES = "modes"
_LEFT = "left"
"""The inode and the mode of each path, as the fault left it."""


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
    ctx.memory[_LEFT] = {
        path: (now[0], mode)
        for path in paths
        if (now := left[shown(path)]) is not None and (mode := mode_of(world, path)) is not None
    }
    if await allowed(world, ctx, tried, paths[0]):
        await give_back(world, ctx)
        raise HarnessError(
            "permissions do not bind the agent here: it runs as root. Use the bubblewrap backend",
            code="fault-impossible",
        )


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


UNSEEN = "on this machine Holdfast cannot see whether the agent ran into it"
UNTOUCHED = "the agent did not access it"


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


def untouched(world: World, ctx: FaultContext) -> str:
    """Why a fault of files was not met; empty if a call of the agent failed for it."""
    felt: Callable[[], bool] | None = ctx.memory.get(FELT)
    if felt is None:
        return UNSEEN
    return "" if felt() else _evaded(world, ctx) or UNTOUCHED


def _evaded(world: World, ctx: FaultContext) -> str:
    """How the permissions that we took were circumvented; empty if they were not."""
    # The permissions of a file forbid writing to it, but not putting another in its place, as `sed -i` does: that
    # needs the permissions of its folder only. Nor do they keep the owner from setting them again. Other faults only
    # take permissions, so whoever added one is the agent.
    left: dict[str, tuple[int, int]] = ctx.memory.get(_LEFT, {})
    for path, (inode, mode) in left.items():
        now, mode_now = footprint(world, path), mode_of(world, path)
        if now is None or mode_now is None or now[0] != inode:
            return f"{path} was replaced, moved or removed, and only a fault of its folder prevents that"
        if mode_now & ~mode:
            return f"the agent changed the permissions of {path}"
    return ""


def _real(world: World, path: str, *, itself: bool) -> str | None:
    """The path without links, but for one that is at its end and is meant itself."""
    folder, name = os.path.split(os.path.normpath(path)) if itself else (path, "")
    try:
        found = world.sandbox.find(folder or ".")
    except OutsideError:
        return None
    return None if found is None else os.path.normpath(f"{os.path.relpath(found, world.sandbox.view())}/{name}")
