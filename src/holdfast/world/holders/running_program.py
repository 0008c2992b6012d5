"""A program in a sandbox, as we see it: alive or ended, and how it is made to end."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from holdfast.errors import HarnessError
from holdfast.processes.limits import GRACE_S
from holdfast.processes.pipes import Pipes
from holdfast.processes.program import KILL_S, KILLED
from holdfast.protocols.sandbox import Ran, Stdio

NEVER = "the sandbox could not execute it"


MemoryEnd = Callable[[int | None, bool], str]
"""From a status, and whether we killed the program: how it ran out of memory; empty if it did not."""


class RunningProgram:
    """A started program, with all that it starts. `send` hands it a signal."""

    def __init__(self, send: Callable[[int], None], memory_end: MemoryEnd = lambda status, by_us: "") -> None:
        self._send = send
        self._memory_end = memory_end
        self.killed = False
        """By us."""
        self.out_of_memory = ""
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.status: int | None = None
        self.took_ms = 0.0
        self.lost = False
        self._notes: tuple[str, ...] = ()

    @property
    def ended(self) -> bool:
        return self._over.done()

    @property
    def notes(self) -> tuple[str, ...]:
        return self._notes

    @property
    def starved(self) -> bool:
        """Whether it, or what it started, has run out of memory so far."""
        return bool(self._memory_end(signal.SIGKILL, self.killed))

    async def within(self, limit_s: float) -> bool:
        if not self.ended:
            await asyncio.wait([self._over], timeout=limit_s)
        return self.ended

    async def end(self, grace_s: float | None = None) -> None:
        """SIGTERM to its group, a grace, SIGKILL to all that is inside."""
        grace_s = GRACE_S if grace_s is None else grace_s
        if self.ended:
            return
        if grace_s:
            self._send(signal.SIGTERM)
            if await self.within(grace_s):
                return
            self._notes = (*self._notes, KILLED)
        self._send(signal.SIGKILL)
        if not await self.within(KILL_S):
            raise HarnessError("a process of the agent could not be ended")

    def finish(self, status: int | None, took_ms: float = 0.0, *, lost: bool = False, note: str = "") -> None:
        """It has ended, and so has all that it left behind."""
        if not self._over.done():
            self.status, self.took_ms, self.lost = status, took_ms, lost
            self.out_of_memory = "" if lost else self._memory_end(status, self.killed)
            self._notes = (*self._notes, *([note] if note else []))
            self._over.set_result(None)


class Last:
    """Keeps the last bytes of what was printed."""

    def __init__(self, limit: int) -> None:
        self._held = bytearray()
        self._limit = limit

    def add(self, data: bytes) -> None:
        self._held += data
        if len(self._held) > 2 * self._limit:
            del self._held[: len(self._held) - self._limit]

    @property
    def data(self) -> bytes:
        return bytes(self._held[max(0, len(self._held) - self._limit) :])


BeginProgram = Callable[[Sequence[str], Mapping[str, str], Stdio], Awaitable[RunningProgram]]


async def run_to_end(
    begin: BeginProgram, argv: Sequence[str], env: Mapping[str, str], stdin: bytes, timeout_s: float, keep: int
) -> Ran:
    """Starts a program and waits for it, for so long; HarnessError if it was never executed."""
    out, err = Last(keep), Last(keep)
    pipes = Pipes(stdin, out, err)
    began = time.monotonic()
    try:
        program = await begin(argv, env, Stdio(*pipes.stdio))
        pipes.give()
        try:
            in_time = await program.within(timeout_s)
        finally:
            await program.end(0.0)
        pipes.drain()
    finally:
        pipes.close()
    if program.lost:
        raise HarnessError(f"{argv[0]}: {' '.join(program.notes)}: {_tail(err)}")
    took_ms = program.took_ms or (time.monotonic() - began) * 1e3
    if not in_time:
        return Ran(None, out.data, err.data, timed_out=True, duration_ms=took_ms)
    code, number = ended(program.status)
    return Ran(code, out.data, err.data, signal=number, duration_ms=took_ms)


def ended(status: int | None) -> tuple[int | None, int]:
    """Exit code and signal of a status, as waitpid gives it."""
    if status is None:
        return None, 0
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), 0


def killed_by(status: int | None, number: int) -> bool:
    """Whether a signal ended it: also where what watched over it, a shell or bubblewrap, passed that on."""
    code, signalled = ended(status)
    return signalled == number or code == 128 + number


def _tail(err: Last) -> str:
    return err.data.decode("utf-8", "replace").strip()[-500:]
