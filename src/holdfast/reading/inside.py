"""Paths of the workspace: those that leave it, and those that others cover."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import PurePosixPath


def outside(path: str, folder: str = "the workspace") -> Iterable[tuple[str, str]]:
    """What is wrong with a path that leaves the workspace, or another folder."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        yield "path", f"must stay inside {folder}: no .. and no absolute path"


def covers(allowed: Iterable[str], path: str) -> bool:
    """Whether one of them is the path, a folder that it lies in, or a glob that it fits."""
    pure = PurePosixPath(path)
    return any(pure.is_relative_to(PurePosixPath(one)) or fnmatchcase(path, one) for one in allowed)
