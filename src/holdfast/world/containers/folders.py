"""The folders of this machine that a container sees."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from holdfast.world.containers.container import Shape


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
