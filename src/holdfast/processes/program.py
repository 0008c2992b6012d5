"""A program that Holdfast has started, as we see it: alive or ended, and how it is made to end.

Where several things end, one that fails keeps no other open, and nobody forgets that it was cancelled.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from math import inf
from typing import TypeVar

from holdfast.errors import HarnessError, SandboxFailed
from holdfast.processes.leftovers import kill_group, survived
from holdfast.processes.limits import GRACE_S
from holdfast.processes.pipes import Pipes, Tail
from holdfast.protocols.sandbox import Ran, Started, Stdio

KILL_S = 10.0
"""For the system to end a killed process: long, since on a busy machine slowness is ours."""
KILLED = "it did not end when it got SIGTERM, and was killed"
"""The note on a program for which SIGTERM was not enough."""
GONE = "what started it is gone"


MemoryEnd = Callable[[int | None, bool], str]
"""From a status, and whether we killed the program: how it ran out of memory; empty if it did not."""


class Program:
    """A started program, with all that it starts: one process group and what daemonised out of it."""

    def __init__(
        self,
        send: Callable[[int], None] | None = None,
        listen: Callable[[], None] = lambda: None,
        memory_end: MemoryEnd = lambda status, by_us: "",
    ) -> None:
        """`send` hands it a signal where its group cannot be reached; `listen` takes what was told and not yet read."""
        self._send = send or (lambda number: kill_group(self.pid, number))
        self._listen = listen
        self._memory_end = memory_end
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.pid = 0
        self.keeper = 0
        """The process that it and all that it starts are below; 0 if there is none."""
        self.status: int | None = None
        """As waitpid gives it, once it has ended; None also if something killed its keeper."""
        self.lost = False
        """What started it died: how the program ended is not known, and not the agent's doing."""
        self.out_of_memory = ""
        self.killed = False
        """By us."""
        self.notes: tuple[str, ...] = ()
        """What the reader should know of how it ended."""
        self.took_ms = 0.0
        """From its start to its end, by the clock of what started it: our own delays are not in it."""

    @property
    def ended(self) -> bool:
        return self._ended.done()

    @property
    def starved(self) -> bool:
        """Whether it, or what it started, has run out of memory so far."""
        return bool(self._memory_end(signal.SIGKILL, self.killed))

    async def within(self, limit_s: float) -> bool:
        """Whether the program has ended by then. An end that was told and not yet read counts."""
        if not self.ended:
            await asyncio.wait([self._ended], timeout=limit_s)
        if not self.ended:
            self._listen()
        return self.ended

    async def end(self, grace_s: float | None = None) -> None:
        """SIGTERM to the group, a grace, SIGKILL. Nothing of it is left afterwards."""
        grace_s = GRACE_S if grace_s is None else grace_s
        if self.ended:
            return
        if grace_s:
            self._send(signal.SIGTERM)
            if await self.within(grace_s):
                return
            self.notes = (*self.notes, KILLED)
        self.kill()
        if not await self.within(KILL_S):
            raise HarnessError(f"process {self.pid or ''} of the agent could not be ended", code="agent-not-ended")

    def kill(self) -> None:
        self.killed = True
        self._send(signal.SIGKILL)

    def finish(
        self, status: int | None, took_ms: float = 0.0, left: int = 0, *, lost: bool = False, note: str = ""
    ) -> None:
        """It has ended, and so has what it left behind, save `left` processes."""
        if not self._ended.done():
            self.status, self.took_ms, self.lost = status, took_ms, lost
            self.out_of_memory = "" if lost else self._memory_end(status, self.killed)
            self.notes = (*self.notes, *survived(left), *([note] if note else []))
            self._ended.set_result(None)


@asynccontextmanager
async def ended_after(program: Started) -> AsyncIterator[None]:
    """Whatever happens, the program is ended afterwards; at once if we were interrupted."""
    try:
        yield
    except asyncio.CancelledError:
        await program.end(0.0)
        raise
    except BaseException:
        await program.end()
        raise
    await program.end()


def how_it_ended(status: int | None) -> str:
    """An end in words, to stand after `it`."""
    if status is None:
        return "was ended from outside"
    if not os.WIFSIGNALED(status):
        return f"exited with code {os.WEXITSTATUS(status)}"
    number = os.WTERMSIG(status)
    known = {s.value: s.name for s in signal.Signals}
    return f"was killed by {known.get(number, f'signal {number}')}"


T = TypeVar("T")


async def all_ended(ending: Iterable[Awaitable[T]]) -> list[T]:
    """Awaits every one at the same time, to its end; then raises the first failure, if there was one."""
    ended = await asyncio.gather(*ending, return_exceptions=True)
    for one in ended:
        if isinstance(one, BaseException):
            raise one
    return [one for one in ended if not isinstance(one, BaseException)]


async def stopped(task: asyncio.Task[T]) -> None:
    """Cancels a task and waits for its end; what it raised before is raised, and our own cancellation is not lost."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()


BeginProgram = Callable[[Sequence[str], Mapping[str, str], Stdio], Awaitable[Program]]


async def run_to_end(
    begin: BeginProgram, argv: Sequence[str], env: Mapping[str, str], stdin: bytes, timeout_s: float, keep: int
) -> Ran:
    """Starts a program and waits for it, for so long; HarnessError if it was never executed."""
    out, err = Tail(keep, inf), Tail(keep, inf)
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
        raise SandboxFailed(f"{argv[0]}: {' '.join(program.notes) or GONE}: {err.text.strip()[-500:]}")
    took_ms = program.took_ms or (time.monotonic() - began) * 1e3
    if not in_time:
        return Ran(None, out.data, err.data, timed_out=True, duration_ms=took_ms)
    code, number = code_and_signal(program.status)
    return Ran(code, out.data, err.data, signal=number, duration_ms=took_ms)


def code_and_signal(status: int | None) -> tuple[int | None, int]:
    """Exit code and signal of a status, as waitpid gives it."""
    if status is None:
        return None, 0
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), 0


def killed_by(status: int | None, number: int) -> bool:
    """Whether a signal ended it: also where what watched over it, a shell or bubblewrap, passed that on."""
    code, signalled = code_and_signal(status)
    return signalled == number or code == 128 + number
