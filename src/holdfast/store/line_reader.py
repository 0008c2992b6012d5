"""Lines of a file by where they start. They are mostly asked for in order, so a block is read at a time."""

from __future__ import annotations

import os
from pathlib import Path

_BLOCK = 1 << 16


class LineReader:
    """A file open for reading; close it when done."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._start = 0
        self._block = b""

    def line(self, start: int) -> bytes:
        """The line that starts there, without its newline."""
        at = start - self._start
        if 0 <= at < len(self._block):
            end = self._block.find(b"\n", at)
            if end >= 0:
                return self._block[at:end]
        return self._read(start)

    def _read(self, start: int) -> bytes:
        size = _BLOCK
        while True:
            block = os.pread(self._fd, size, start)
            end = block.find(b"\n")
            if end >= 0 or len(block) < size:
                break
            size *= 2
        self._start, self._block = start, block
        return block[:end] if end >= 0 else block

    def close(self) -> None:
        os.close(self._fd)
