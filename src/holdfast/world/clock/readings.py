"""Which changes of a clock its programs have seen: each tells us once of every change, when it next reads the clock.

They tell by a named pipe, which can be written to in a folder that is otherwise read-only to them.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path

SUFFIX = ".reads"
"""Of the pipe's name, after that of the control file; the library has it, too."""
_CHANGE = struct.Struct("=q")
_AT_ONCE = _CHANGE.size * 8192


class ClockReadings:
    """Our end of the pipe. Close it after use; the file is the caller's."""

    def __init__(self, path: Path) -> None:
        """OSError where there can be no such file."""
        self._told: set[int] = set()
        os.mkfifo(path)
        path.chmod(0o666)  # the agent's user, whatever our mask is
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def seen(self) -> frozenset[int]:
        """The numbers of the changes that were seen so far."""
        with suppress(BlockingIOError):  # a program has it open, and has nothing more to tell
            while told := os.read(self._fd, _AT_ONCE):
                whole = told[: len(told) // _CHANGE.size * _CHANGE.size]
                self._told.update(change for (change,) in _CHANGE.iter_unpack(whole))
        return frozenset(self._told)

    def close(self) -> None:
        os.close(self._fd)
