"""What programs see as the time of day, and how it is changed while they run."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

CONTROL, OFFSET = "HOLDFAST_CLOCK", "HOLDFAST_CLOCK_OFFSET_NS"
"""What the library reads in a program's environment: the control file, or a fixed shift where there is none."""
SIZE = 24
_BILLION = 1_000_000_000
_AHEAD, _STANDS, _CHANGES = 0, 1, 2
_MOST_NS = 2**62
"""Some 146 years on either side of 1970: sums of two of them still fit into 64 bits."""


class Clock:
    """The clock of one trial, in a small file that its programs map. Close it after use; the file is the caller's.

    Each change is one store of 8 bytes, in an order in which no program ever sees a time that is neither before
    nor after it.
    """

    def __init__(self, path: Path, *, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._now_ns = now_ns
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            os.fchmod(fd, 0o644)  # the agent's user reads it, whatever our mask is
            os.ftruncate(fd, SIZE)
            self._map = mmap.mmap(fd, SIZE)
        finally:
            os.close(fd)
        self._numbers = memoryview(self._map).cast("q")

    @property
    def time_ns(self) -> int:
        """What programs see now, in nanoseconds since 1970."""
        return self._numbers[_STANDS] or self._now_ns() + self._numbers[_AHEAD]

    @property
    def stands(self) -> bool:
        return bool(self._numbers[_STANDS])

    def set(self, offset_ns: int) -> None:
        """It goes, so far ahead of the real clock."""
        self._numbers[_AHEAD] = within(offset_ns)
        self._numbers[_STANDS] = 0

    def jump(self, to_ns: int) -> None:
        """It shows this time, and goes on from there."""
        self.set(to_ns - self._now_ns())

    def freeze(self, at_ns: int | None = None) -> None:
        """It stands still, at this time or at what it shows now."""
        self._numbers[_STANDS] = within(self.time_ns if at_ns is None else at_ns) or 1  # 0 means that it goes

    def changed(self) -> int:
        """From now on whoever reads the clock tells of this change, by its number."""
        self._numbers[_CHANGES] += 1
        return self._numbers[_CHANGES]

    def close(self) -> None:
        self._numbers.release()
        self._map.close()


def within(ns: int) -> int:
    """The nearest number that a clock can hold."""
    return max(-_MOST_NS, min(_MOST_NS, ns))


def nanoseconds(moment: datetime) -> int:
    """Since 1970, exactly; a moment without a zone is one of UTC."""
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime.fromtimestamp(0, UTC)
    return (since.days * 86_400 + since.seconds) * _BILLION + since.microseconds * 1000


def clock_environ(library_inside: str, starts: datetime, now: float, control: str | None) -> dict[str, str]:
    """What a program's environment needs, so that its clock starts there; `control` is the file as programs find it.

    The library must be first in LD_PRELOAD; a value that the program has anyway goes behind it.
    """
    offset = within(nanoseconds(starts) - round(now * _BILLION))
    found = {"LD_PRELOAD": library_inside, OFFSET: str(offset)}
    return found if control is None else {**found, CONTROL: control}
