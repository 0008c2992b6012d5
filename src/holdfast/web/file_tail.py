"""Follows a growing file: each call returns the complete lines added since the last."""

from __future__ import annotations

import os
from pathlib import Path

MOST = 8 << 20
"""Bytes per call; the rest comes with the next."""


class FileReplaced(Exception):
    """The file was replaced or became shorter: what was read no longer counts."""


class FileTail:
    """One file, which may not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._at = 0
        self._inode = 0

    def read_lines(self) -> list[bytes]:
        """Return the complete lines; an unfinished one is left for the next call."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe at this path must not block
        except OSError:
            return []
        try:
            stat = os.fstat(fd)
            if self._inode and (stat.st_ino != self._inode or stat.st_size < self._at):
                raise FileReplaced
            self._inode = stat.st_ino
            return self._read(fd, stat.st_size)
        finally:
            os.close(fd)

    def _read(self, fd: int, size: int) -> list[bytes]:
        room = MOST
        while self._at < size:
            data = os.pread(fd, room, self._at)
            end = data.rfind(b"\n") + 1
            if end:
                self._at += end
                return data[: end - 1].split(b"\n")
            if len(data) < room:
                return []
            room *= 2  # one line that is longer than that
        return []
