"""Paths that must stay in the workspace."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath


def outside(path: str) -> Iterable[tuple[str, str]]:
    """What is wrong with a path that leaves the workspace."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        yield "path", "must stay inside the workspace: no .. and no absolute path"
