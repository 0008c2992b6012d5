"""The clock of one world, in a file that the agent's programs read but cannot write.

The programs preload a library, compiled and tested on this machine. It shifts the time of day that a program reads, and
the deadlines that the program passes in it. Monotonic clocks and file times stay real. It does not affect programs that
are statically linked, that call the kernel directly (Go), that use another architecture or C library, or that clear
their environment.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from holdfast.errors import HarnessError
from holdfast.model.capabilities import CLOCK, build_enforced, build_missing
from holdfast.model.world import Isolation
from holdfast.protocols.sandbox import Sandbox
from holdfast.world.compiled import CannotCompile, compile_source

CONTROL, OFFSET = "HOLDFAST_CLOCK", "HOLDFAST_CLOCK_OFFSET_NS"
"""The variable that the library reads: the control file, or a fixed shift if there is none."""
SIZE = 24
_BILLION = 1_000_000_000
_AHEAD, _STANDS, _CHANGES = 0, 1, 2
_MOST_NS = 2**62
"""About 146 years before or after 1970: the sum of two of them still fits into 64 bits."""


class Clock:
    """The clock of one trial, in a small file that its programs map. Close it after use; the caller owns the file."""

    # Three numbers of 8 bytes: how far the clock is ahead, the time at which it is frozen (0: it runs), and the number
    # of the last change. The preloaded library reads them without a lock, so each change is one aligned store of 8
    # bytes, and they are made in an order in which every moment in between shows the time before or after the change.

    def __init__(self, path: Path, *, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._now_ns = now_ns
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            os.fchmod(fd, 0o644)  # the agent's user must be able to read it, whatever the umask
            os.ftruncate(fd, SIZE)
            self._map = mmap.mmap(fd, SIZE)
        finally:
            os.close(fd)
        self._numbers = memoryview(self._map).cast("q")

    @property
    def time_ns(self) -> int:
        """The time that programs see now, in nanoseconds since 1970."""
        return self._numbers[_STANDS] or self._now_ns() + self._numbers[_AHEAD]

    def set(self, offset_ns: int) -> None:
        """Let the clock run, this far ahead of the real one."""
        self._numbers[_AHEAD] = clamp(offset_ns)
        self._numbers[_STANDS] = 0

    def jump(self, to_ns: int) -> None:
        """Set the clock to this time; it continues from there."""
        self.set(to_ns - self._now_ns())

    def freeze(self, at_ns: int | None = None) -> None:
        """Stop the clock, at this time or at the time it shows now."""
        self._numbers[_STANDS] = clamp(self.time_ns if at_ns is None else at_ns) or 1  # 0 means that it runs

    def mark_change(self) -> int:
        """Make every later reader of the clock report this change, by its number."""
        self._numbers[_CHANGES] += 1
        return self._numbers[_CHANGES]

    def close(self) -> None:
        self._numbers.release()
        self._map.close()


def clamp(ns: int) -> int:
    """Return the nearest number that a clock can hold."""
    return max(-_MOST_NS, min(_MOST_NS, ns))


def to_nanoseconds(moment: datetime) -> int:
    """Return the nanoseconds since 1970, exactly; a time without a zone is UTC."""
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime.fromtimestamp(0, UTC)
    return (since.days * 86_400 + since.seconds) * _BILLION + since.microseconds * 1000


def build_clock_environ(library_inside: str, starts: datetime, now: float, control: str | None) -> dict[str, str]:
    """Return the variables that start a program's clock there; `control` is the file's path as programs see it.

    The library must be first in LD_PRELOAD; an existing value follows it.
    """
    offset = clamp(to_nanoseconds(starts) - round(now * _BILLION))
    environ = {"LD_PRELOAD": library_inside, OFFSET: str(offset)}
    return environ if control is None else {**environ, CONTROL: control}


SOURCE = Path(__file__).with_name("realtime.c")
COVERED = "the time that programs read through this machine's C library, if they keep their environment"
_FLAGS = ("-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-delete-null-pointer-checks", "-Wno-nonnull-compare")
_LIBRARIES = ("-ldl", "-lpthread")
_TEST_TIME_S = 1_000_000_000
"""The time in the past that a program must see when the library is tested."""
_TEST_S = 60.0
_SLACK_S = 60
"""Maximum time that a busy machine may take to run a program."""


async def find_clock_library() -> Path | Isolation:
    """Return the library; if it is unavailable, the guarantee that does not hold and the reason."""
    if sys.platform != "linux":
        return build_missing("clock-platform")
    try:
        return await asyncio.to_thread(compile_source, SOURCE, _FLAGS, _LIBRARIES, _try)
    except CannotCompile as why:
        return build_missing("clock-failed", why=why)


async def probe_clock(sandbox: Sandbox, environ: Mapping[str, str], clock: Clock) -> Isolation:
    """Test whether programs in a sandbox see that clock: an image may have another C library, or no `date`."""
    try:
        ran = await sandbox.run(["date", "+%s"], environ, timeout_s=_TEST_S, throwaway=True)
    except OSError as missing:
        return build_missing("clock-failed", why=f"the sandbox cannot execute date: {missing.strerror}")
    printed = ran.stdout.strip()
    if printed.isdigit() and abs(int(printed) - clock.time_ns // 10**9) <= _SLACK_S:
        return build_enforced(CLOCK, COVERED)
    message = ran.stderr.decode("utf-8", "replace").strip()[-200:]
    return build_missing("clock-ignored", shown=message or printed.decode())


def _try(library: Path) -> None:
    """Raise CannotCompile if a program that preloads the library sees the real time."""
    with tempfile.NamedTemporaryFile(dir=library.parent) as control:
        control.write(bytes(8) + (_TEST_TIME_S * 10**9).to_bytes(8, sys.byteorder) + bytes(8))
        control.flush()
        env, printed = {"LD_PRELOAD": str(library), CONTROL: control.name}, b""
        with suppress(subprocess.TimeoutExpired):
            ran = subprocess.run(["/bin/date", "+%s"], env=env, capture_output=True, timeout=_TEST_S, check=False)
            printed = ran.stdout
    if printed.strip() != str(_TEST_TIME_S).encode():
        raise CannotCompile("its library was compiled, but a program that preloads it sees the real time")


SUFFIX = ".reads"
"""Suffix of the pipe's name, after that of the control file; the library uses it, too."""
_CHANGE = struct.Struct("=q")
_AT_ONCE = _CHANGE.size * 8192
_LIBRARY, _CONTROL = "clock.so", "clock"


class ClockReadings:
    """The reading end of a pipe on which programs report which changes of their clock they have seen.

    Each program reports every change once, when it next reads the clock. A named pipe is writable even in a folder that
    is otherwise read-only to them. Close it after use; the caller owns the file.
    """

    def __init__(self, path: Path) -> None:
        """Raise OSError if the pipe cannot be created."""
        self._reported: set[int] = set()
        os.mkfifo(path)
        path.chmod(0o666)  # for the agent's user, whatever the umask
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def read_reported(self) -> frozenset[int]:
        """Return the numbers of the changes that were observed so far."""
        with suppress(BlockingIOError):  # a program has it open, and has nothing more to report
            while data := os.read(self._fd, _AT_ONCE):
                complete = data[: len(data) // _CHANGE.size * _CHANGE.size]
                self._reported.update(change for (change,) in _CHANGE.iter_unpack(complete))
        return frozenset(self._reported)

    def close(self) -> None:
        os.close(self._fd)


class WorldClock:
    """Sets the agent's clock, if possible. Close it after use."""

    def __init__(self, folder: Path, known: Isolation | None = None) -> None:
        """`folder` is visible to the agent but read-only; `known`: the clock was already tested in such a sandbox."""
        self._folder = folder
        self._known = known
        self._clock: Clock | None = None
        self._readings: ClockReadings | None = None
        self.support = build_missing("clock-unused")
        self.environ: dict[str, str] = {}
        self.changes = 0
        """Number of changes since the clock was set up."""

    async def start(
        self, starts: str | None, sandbox: Sandbox, folder_inside: str, environ: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the variables for the agent; empty if the clock is unavailable: `support` says why.

        `starts` is a time as written in the spec, None the real time; `folder_inside` is the folder as programs see it.
        """
        library = await find_clock_library()
        if isinstance(library, Isolation):
            self.support = library
            return {}
        shutil.copyfile(library, self._folder / _LIBRARY)
        (self._folder / _LIBRARY).chmod(0o755)
        clock = self._clock = Clock(self._folder / _CONTROL)
        with suppress(OSError):  # this file system has no pipes: readings will not be observed
            self._readings = ClockReadings(self._folder / f"{_CONTROL}{SUFFIX}")
        # The shift is in the environment as well as in the file: programs that cannot map the file still start at the
        # right time.
        try:
            moment = datetime.now(UTC) if starts is None else datetime.fromisoformat(starts)
        except ValueError:
            why = f"determinism.clock is not a time: {starts!r}; write it as 2026-01-01T00:00:00Z"
            raise HarnessError(why, code="spec-invalid") from None
        clock_variables = build_clock_environ(
            f"{folder_inside}/{_LIBRARY}", moment, time.time(), f"{folder_inside}/{_CONTROL}"
        )
        if starts is not None:
            clock.set(int(clock_variables[OFFSET]))
        self.support = self._known or await probe_clock(sandbox, {**environ, **clock_variables}, clock)
        self.environ = clock_variables if self.support.enforced else {}
        return dict(self.environ)

    @property
    def isolation(self) -> tuple[Isolation, ...]:
        """What is covered, and what is not."""
        return (self.support, build_missing("clock-environment")) if self.support.enforced else (self.support,)

    def read_time(self) -> float:
        """Return the time on the agent's clock."""
        return self._require_clock().time_ns / _BILLION

    def set(self, now: float, *, frozen: bool) -> None:
        clock = self._require_clock()
        if frozen:
            clock.freeze(round(now * _BILLION))
        else:
            clock.jump(round(now * _BILLION))
        # The number comes after the time, so that a program that reports it has read the new time.
        self.read_changes()  # reports about earlier changes must not fill the pipe
        self.changes = clock.mark_change()

    def read_changes(self) -> frozenset[int] | None:
        """Return the changes after which a program read the clock; None if unknown."""
        return None if self._readings is None else self._readings.read_reported()

    def close(self) -> None:
        if self._readings is not None:
            self._readings.close()
            self._readings = None
        if self._clock is not None:
            self._clock.close()
            self._clock = None

    def _require_clock(self) -> Clock:
        if self._clock is None or not self.support.enforced:
            raise HarnessError(f"the agent's clock cannot be set here: {self.support.why}", code="clock-unavailable")
        return self._clock
