"""Paths of the workspace: those that leave it, and those that others cover."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

_WORKSPACE = PurePosixPath("/workspace")
_HOME = PurePosixPath("/home/agent")
_TAKEN = ("agent", "bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "nix", "opt", "proc", "run", "sbin", "sys",
          "tmp", "usr", "var", "workspace")  # fmt: skip
"""Folders at the top of every sandbox that have a meaning there."""


def in_workspace(path: str) -> str:
    """A path of the workspace, which may be written as programs inside see it, relative to it."""
    pure = PurePosixPath(path)
    return str(pure.relative_to(_WORKSPACE)) if pure.is_relative_to(_WORKSPACE) else path


def can_be_workdir(path: str) -> bool:
    """Whether the workspace can also be found at that path in a sandbox."""
    pure = PurePosixPath(path)
    top = pure.parts[1:2]
    if not pure.is_absolute() or ".." in pure.parts or not top or top[0] in _TAKEN:
        return False
    return not pure.is_relative_to(_HOME) and not _HOME.is_relative_to(pure)


def outside(path: str, folder: str = "the workspace") -> Iterable[tuple[str, str]]:
    """What is wrong with a path that leaves the workspace, or another folder."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        yield "path", f"must stay inside {folder}: no .. and no absolute path"


def covers(allowed: Iterable[str], path: str) -> bool:
    """Whether one of them is the path, a folder that it lies in, or a glob that it fits."""
    pure = PurePosixPath(path)
    return any(pure.is_relative_to(PurePosixPath(one)) or fnmatchcase(path, one) for one in allowed)
