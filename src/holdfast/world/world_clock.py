"""The clock of one world: the agent's programs read it in a file that they cannot write to."""

from __future__ import annotations

import os
import shutil
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from holdfast.errors import HarnessError
from holdfast.model.world import Isolation
from holdfast.protocols.sandbox import Sandbox
from holdfast.world.clock.control import OFFSET, Clock, clock_environ
from holdfast.world.clock.library import FEATURE, OTHERS, clock_inside, clock_library

SUFFIX = ".reads"
"""Of the pipe's name, after that of the control file; the library has it, too."""
_CHANGE = struct.Struct("=q")
_AT_ONCE = _CHANGE.size * 8192
_LIBRARY, _CONTROL = "clock.so", "clock"
_BILLION = 1_000_000_000


class WorldClock:
    """Sets the agent's clock, if it can be set. Close it after use."""

    def __init__(self, folder: Path, known: Isolation | None = None) -> None:
        """`folder` is what the agent sees and cannot change; `known`: it was tried in such a sandbox before."""
        self._folder = folder
        self._known = known
        self._clock: Clock | None = None
        self._readings: ClockReadings | None = None
        self.kept = Isolation(FEATURE, False, "no clock was asked for")
        self.environ: dict[str, str] = {}
        self.changes = 0
        """How often it was changed since it was wound."""

    async def wind(
        self, starts: str | None, sandbox: Sandbox, seen_at: str, environ: Mapping[str, str]
    ) -> dict[str, str]:
        """What the agent's environment needs; nothing where the clock cannot be had: `kept` says why.

        `starts` is a moment as the spec writes it, None the real time; `seen_at` is the folder as programs see it.
        """
        library = await clock_library()
        if isinstance(library, Isolation):
            self.kept = library
            return {}
        shutil.copyfile(library, self._folder / _LIBRARY)
        (self._folder / _LIBRARY).chmod(0o755)
        clock = self._clock = Clock(self._folder / _CONTROL)
        with suppress(OSError):  # on this file system there is no such thing: no reading will be seen
            self._readings = ClockReadings(self._folder / f"{_CONTROL}{SUFFIX}")
        moment = datetime.now(UTC) if starts is None else _moment(starts)
        found = clock_environ(f"{seen_at}/{_LIBRARY}", moment, time.time(), f"{seen_at}/{_CONTROL}")
        if starts is not None:
            clock.set(int(found[OFFSET]))
        self.kept = self._known or await clock_inside(sandbox, {**environ, **found}, clock)
        self.environ = found if self.kept.enforced else {}
        return dict(self.environ)

    @property
    def isolation(self) -> tuple[Isolation, ...]:
        """What is covered, and what is not."""
        return (self.kept, OTHERS) if self.kept.enforced else (self.kept,)

    def time(self) -> float:
        """What the agent's clock shows."""
        return self._usable().time_ns / _BILLION

    def set(self, now: float, *, frozen: bool) -> None:
        clock = self._usable()
        if frozen:
            clock.freeze(round(now * _BILLION))
        else:
            clock.jump(round(now * _BILLION))
        self.seen_changes()  # what was told of earlier ones must not fill the pipe
        self.changes = clock.changed()

    def seen_changes(self) -> frozenset[int] | None:
        """After which changes a program read the clock; None where that is not told."""
        return None if self._readings is None else self._readings.seen()

    def close(self) -> None:
        if self._readings is not None:
            self._readings.close()
            self._readings = None
        if self._clock is not None:
            self._clock.close()
            self._clock = None

    def _usable(self) -> Clock:
        if self._clock is None or not self.kept.enforced:
            raise HarnessError(f"the agent's clock cannot be set here: {self.kept.why}")
        return self._clock


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise HarnessError(f"determinism.clock is no moment: {text!r}; write it as 2026-01-01T00:00:00Z") from None


# Which changes of a clock its programs have seen: each tells us once of every change, when it next reads the clock.
#
# They tell by a named pipe, which can be written to in a folder that is otherwise read-only to them.
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
