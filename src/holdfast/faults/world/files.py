"""The common part of file faults: paths, permissions, their commands, and whether the agent hit them.

The agent is not credited with what a fault does: the fault stores each command that it runs and each path that it
changes in its memory, so that the audit leaves them out. A file fault is met only if the agent touched the files.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Literal

from holdfast.errors import HarnessError, OutsideError
from holdfast.processes.leftovers import OWN_COMMAND
from holdfast.protocols.fault import FaultContext
from holdfast.protocols.sandbox import CommandResult, FileChange, FileHazard, WatchingSandbox
from holdfast.protocols.world import World
from holdfast.protocols.world_fault import HIT_TEST, RAN, TOUCHED, TouchedPath
from holdfast.reading.file import find_path_problem

_ENVIRON = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", OWN_COMMAND: "1"}
_PATHS_PER_COMMAND = 200
_PATHS_LIMIT = 10_000
_LISTING_ATTEMPTS = 5
"""How often to list the workspace: while an agent writes, a listing can fail."""


def check_path(path: str) -> Iterable[tuple[str, str]]:
    """Yield why a path cannot be used: it leaves the workspace, or is all of it."""
    yield from find_path_problem(path)
    if path in (".", "./"):
        yield "path", "a program cannot run without its workspace: name a file or a folder in it"


def find_path(world: World, path: str) -> Path | None:
    """Return the file or folder as a readable path; None if there is none, or only a link that leads out."""
    try:
        return world.sandbox.find(path)
    except OutsideError:
        return None


def list_below(world: World, path: str, *, links: bool = False) -> list[str]:
    """Return the path and everything in it, as paths of the workspace; with `links` also links."""
    top = find_path(world, path)
    if top is None:
        return []
    paths = [path]
    for folder, folders, files in os.walk(top):
        at = os.path.normpath(f"{path}/{os.path.relpath(folder, top)}")
        inside = [name for name in (*folders, *files) if links or not os.path.islink(f"{folder}/{name}")]
        paths += [os.path.normpath(f"{at}/{name}") for name in inside]
        if len(paths) > _PATHS_LIMIT:
            raise HarnessError(
                f"{path} holds more than {_PATHS_LIMIT} files: name a smaller part of the workspace",
                code="fault-impossible",
            )
    return paths


def read_mode(world: World, path: str) -> int | None:
    """Return the current permissions."""
    host_path = find_path(world, path)
    return None if host_path is None else host_path.stat().st_mode & 0o7777


def read_footprint(world: World, path: str) -> tuple[int, int] | None:
    """Return a value that changes whenever anybody changes the file: nobody can set its ctime. None if it is gone."""
    host_path = find_path(world, path)
    if host_path is None:
        return None
    stat = host_path.lstat()
    return stat.st_ino, stat.st_ctime_ns


async def record_changes(
    world: World, ctx: FaultContext, paths: Collection[str], is_fault_state: Callable[[FileChange], bool]
) -> None:
    """Store what the agent did at these paths before the fault changes them.

    `is_fault_state` recognises the state in which the fault leaves a path.
    """
    import asyncio  # imported here, because faults are also made where no event loop ever runs

    names = {normalize_path(path) for path in paths}
    before = await asyncio.to_thread(_list_changes, world, names)
    ctx.memory.setdefault(TOUCHED, {}).update({path: TouchedPath(before.get(path), is_fault_state) for path in names})


def forget_changes(ctx: FaultContext) -> None:
    """Forget the fault's changes, which are undone: from now on every change is the agent's."""
    ctx.memory.pop(TOUCHED, None)


def normalize_path(path: str) -> str:
    """Return a path in the format of file changes."""
    return os.fsencode(os.path.normpath(path)).decode("utf-8", "backslashreplace")


def _list_changes(world: World, paths: Collection[str]) -> dict[str, FileChange]:
    # The agent runs meanwhile and may remove a file while it is being read. The listing is then repeated; only the last
    # attempt may fail.
    for _ in range(_LISTING_ATTEMPTS - 1):
        try:
            return {change.path: change for change in world.changes() if change.path in paths}
        except (HarnessError, OSError):
            continue
    return {change.path: change for change in world.changes() if change.path in paths}


async def run_command(world: World, ctx: FaultContext, *argv: str) -> CommandResult:
    """Run a command of the fault in the workspace."""
    ctx.memory.setdefault(RAN, []).append(tuple(argv))
    return await world.sandbox.run(argv, _ENVIRON, timeout_s=60.0)


async def run_on_paths(world: World, ctx: FaultContext, words: Sequence[str], paths: Sequence[str]) -> None:
    """Run a command for many paths; raise HarnessError if it fails."""
    for at in range(0, len(paths), _PATHS_PER_COMMAND):
        batch = [f"./{path}" for path in paths[at : at + _PATHS_PER_COMMAND]]
        ran = await run_command(world, ctx, *words, "--", *batch)
        if ran.exit_code != 0:
            message = ran.stderr.decode("utf-8", "replace").strip()[-300:]
            raise HarnessError(
                f"{words[0]} failed in the workspace: {message or ran.exit_code}", code="fault-impossible"
            )


_MODES = "modes"
_LEFT = "left"
"""The inode and mode of each path, as the fault left it."""


async def remove_permissions(world: World, ctx: FaultContext, paths: Sequence[str], change: str, access: str) -> None:
    """Change permissions and verify that the agent has lost this access: `-r` to read, `-w` to write."""
    modes = ctx.memory.setdefault(_MODES, {})
    modes |= {path: mode for path in paths if (mode := read_mode(world, path)) is not None}
    footprints: dict[str, tuple[int, int] | None] = {}

    def is_unchanged(change: FileChange) -> bool:
        return change.path in footprints and read_footprint(world, change.path) == footprints[change.path]

    await record_changes(world, ctx, paths, is_unchanged)
    await run_on_paths(
        world, ctx, ("chmod", change), list(reversed(paths))
    )  # the contents of a folder before the folder
    # The footprint has the ctime, which nobody can set. If the agent later changes a mode back, the path is the agent's
    # change again, and not what the fault left there.
    footprints |= {normalize_path(path): read_footprint(world, path) for path in paths}
    ctx.memory[_LEFT] = {
        path: (now[0], mode)
        for path in paths
        if (now := footprints[normalize_path(path)]) is not None and (mode := read_mode(world, path)) is not None
    }
    if (await run_command(world, ctx, "test", access, f"./{paths[0]}")).exit_code == 0:
        await restore_permissions(world, ctx)
        raise HarnessError(
            "permissions have no effect on the agent here, because it runs as root: use the bubblewrap backend",
            code="fault-impossible",
        )


async def restore_permissions(world: World, ctx: FaultContext) -> None:
    """Restore the permissions of the paths that still exist."""
    forget_changes(ctx)
    modes: dict[str, int] = ctx.memory.pop(_MODES, {})
    by_mode: dict[int, list[str]] = defaultdict(list)
    for path, mode in modes.items():
        if find_path(world, path) is not None:
            by_mode[mode].append(path)
    for mode, paths in by_mode.items():
        await run_on_paths(world, ctx, ("chmod", f"{mode:o}"), paths)


UNSEEN = "on this machine Holdfast cannot see whether the agent ran into it"
UNTOUCHED = "the agent did not access it"


async def watch_path(
    world: World,
    ctx: FaultContext,
    kind: Literal["gone", "denied", "read_only", "full"],
    path: str = ".",
    *,
    spared: Iterable[str] = (),
) -> None:
    """Start watching before the fault acts; `spared` are paths below that already were in that state."""
    if not isinstance(world.sandbox, WatchingSandbox):
        return
    real = _resolve_path(world, path, itself=kind == "gone")
    if real is not None:
        moved = tuple(os.path.normpath(f"{real}/{os.path.relpath(below, path)}") for below in spared)
        ctx.memory[HIT_TEST] = await world.sandbox.watch(FileHazard(kind, real, moved))


def explain_no_hit(world: World, ctx: FaultContext) -> str:
    """Return why a file fault was not met; empty if a call of the agent failed because of it."""
    is_hit: Callable[[], bool] | None = ctx.memory.get(HIT_TEST)
    if is_hit is None:
        return UNSEEN
    return "" if is_hit() else _explain_evasion(world, ctx) or UNTOUCHED


def _explain_evasion(world: World, ctx: FaultContext) -> str:
    """Return how the agent circumvented the removed permissions; empty if it did not."""
    # The permissions of a file forbid writing to it, but not replacing it, as `sed -i` does: that needs only the
    # permissions of its folder. Nor do they keep the owner from setting them again. Other faults only remove
    # permissions, so if one was added, the agent added it.
    states: dict[str, tuple[int, int]] = ctx.memory.get(_LEFT, {})
    for path, (inode, mode) in states.items():
        now, mode_now = read_footprint(world, path), read_mode(world, path)
        if now is None or mode_now is None or now[0] != inode:
            return f"{path} was replaced, moved or removed; only a fault on its folder prevents that"
        if mode_now & ~mode:
            return f"the agent changed the permissions of {path}"
    return ""


def _resolve_path(world: World, path: str, *, itself: bool) -> str | None:
    """Return the path with links resolved, except a final link if `itself`."""
    folder, name = os.path.split(os.path.normpath(path)) if itself else (path, "")
    try:
        host_path = world.sandbox.find(folder or ".")
    except OutsideError:
        return None
    return None if host_path is None else os.path.normpath(f"{os.path.relpath(host_path, world.sandbox.view())}/{name}")
