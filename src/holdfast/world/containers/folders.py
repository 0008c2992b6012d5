"""What a container takes from this machine: the folders that it sees, and the program that it begins with."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from holdfast.errors import UserError
from holdfast.world.compiled import CannotCompile, compiled
from holdfast.world.containers.container import Shape

SOURCE = Path(__file__).with_suffix(".c")
_FLAGS = ("-O2", "-static")


def make_folders(shape: Shape, hosts: str, fill: Callable[[str, Path], None] = lambda name, target: None) -> None:
    """Makes them, its user's own; `fill` puts something into each, by its name."""
    for name in ("workspace", "home", "tmp"):
        target = shape.folder / name
        target.mkdir()
        fill(name, target)
        target.chmod(0o755)
        _give(target, *shape.user)
    (shape.folder / "hosts").write_text(hosts)
    (shape.folder / "hosts").chmod(0o644)


def _give(folder: Path, uid: int, gid: int) -> None:
    if os.getuid() != 0:
        return
    os.chown(folder, uid, gid)
    for at, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(os.path.join(at, name), uid, gid, follow_symlinks=False)


async def first_process() -> Path:
    """The first process of containers, compiled for this machine; UserError where that cannot be."""
    try:
        return await asyncio.to_thread(compiled, SOURCE, _FLAGS, (), lambda _: None)
    except CannotCompile as why:
        raise UserError(f"the first process of containers cannot be had: {why}") from why
