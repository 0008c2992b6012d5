"""Paths of the host that a sandbox sees, made reachable for a user who may not go there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from holdfast.errors import HarnessError
from holdfast.world.sandbox import kernel


class Sources:
    """The sources of one sandbox, in order. Close it once they are handed over.

    Not as root, a source is its path. As root it is a mount of its own, which needs no way from the top; root's
    files belong to the sandbox's user there, so that an agent can change its copy of them.
    """

    def __init__(self, uid: int, gid: int, mapping: int, folder: Path) -> None:
        self._owner = uid, gid
        self._mapping = mapping
        """A user namespace that turns root's files into that user's; -1: there is none."""
        self._folder = folder
        self.paths: list[str | None] = []
        self.folders: list[bool] = []
        self.trees: list[int] = []
        self.copies: list[Path] = []
        """To be removed when the sandbox is gone."""

    def add(self, path: Path, *, writable: bool = False) -> int:
        """The number of a source; `writable`: the user must own its files."""
        try:
            real = path.resolve(strict=True)
            self.folders.append(real.is_dir())
            if os.getuid() == 0:
                self.trees.append(self._tree(real, writable))
                self.paths.append(None)
            else:
                self.paths.append(str(real))
        except OSError as broken:
            raise HarnessError(f"{path} cannot be put into the sandbox: {broken.strerror or broken}") from broken
        return len(self.paths) - 1

    def close(self) -> None:
        for tree in self.trees:
            os.close(tree)
        self.trees.clear()

    def _tree(self, path: Path, writable: bool) -> int:
        owner = path.stat().st_uid
        if owner == 0 and self._mapping >= 0:
            tree = kernel.clone_tree(str(path))
            try:
                kernel.change_owner(tree, self._mapping)
            except OSError:  # not on this file system
                os.close(tree)
            else:
                return tree
        return kernel.clone_tree(str(self._copy(path) if writable and owner != self._owner[0] else path))

    def _copy(self, path: Path) -> Path:
        copy = self._folder / f"source-{os.urandom(6).hex()}"
        self.copies.append(copy)
        shutil.copytree(path, copy, symlinks=True)
        os.chown(copy, *self._owner)
        for at, folders, files in os.walk(copy):
            for name in (*folders, *files):
                os.chown(os.path.join(at, name), *self._owner, follow_symlinks=False)
        return copy
