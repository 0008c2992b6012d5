"""What stood in the files that an agent changed: short texts, kept for people to look at."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.model.world import FileTexts
from holdfast.protocols.sandbox import FileChange, Sandbox
from holdfast.world.workspace import inside

LONG = 32_000
"""Bytes of one file; a longer one is told by its name and size alone."""
ROOM = 500_000
"""Characters of all files of a trial."""


class ChangedTexts:
    """The texts of one trial's files. `layer` is the workspace as it was; None: the setup may have changed it."""

    def __init__(self, sandbox: Sandbox, layer: Path | None) -> None:
        self._sandbox = sandbox
        self._layer = layer
        self._room = ROOM

    def of(self, change: FileChange) -> FileTexts | None:
        """None where neither side is known, or there is no room left."""
        before = self._before(change.path) if change.op != "created" else None
        after = self._after(change.path) if change.op != "deleted" else None
        if change.op == "modified" and (before is None or after is None):
            return None  # one side alone would look as if all of it had been made, or removed
        self._room -= len(before or "") + len(after or "")
        return None if self._room < 0 or (before is None and after is None) else FileTexts(before, after)

    def _before(self, path: str) -> str | None:
        try:
            return None if self._layer is None else _text(inside(self._layer, path))
        except HoldfastError:
            return None

    def _after(self, path: str) -> str | None:
        try:
            found = self._sandbox.find(path)
        except (HoldfastError, OSError):
            return None
        return None if found is None else _text(found)


def opened(path: Path) -> int | None:
    """A regular file, open; None for anything else: no link is followed, and nothing waits for a pipe."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return None


def _text(path: Path) -> str | None:
    """The text of a regular file."""
    fd = opened(path)
    if fd is None:
        return None
    try:
        data = os.read(fd, LONG + 1)
    except OSError:
        return None
    finally:
        os.close(fd)
    if len(data) > LONG or b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
