"""A program that Holdfast has started, as we see it: alive or ended, and how it is made to end.

Where several things end, one that fails keeps no other open, and nobody forgets that it was cancelled.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

from holdfast.errors import HarnessError
from holdfast.processes.leftovers import kill_group, survived
from holdfast.processes.limits import GRACE_S
from holdfast.protocols.sandbox import Started

KILL_S = 10.0
"""For the system to end a killed process: long, since on a busy machine slowness is ours."""
KILLED = "it did not end when it got SIGTERM, and was killed"
"""The note on a program for which SIGTERM was not enough."""


class Program:
    """A started program, with all that it starts: one process group and what daemonised out of it."""

    def __init__(self, listen: Callable[[], None]) -> None:
        self._listen = listen
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.pid = 0
        self.keeper = 0
        """The process that it and all that it starts are below; 0 if there is none."""
        self.status: int | None = None
        """As waitpid gives it, once it has ended; None also if something killed its keeper."""
        self.lost = False
        """The launch host died: how the program ended is not known, and not the agent's doing."""
        self.out_of_memory = ""
        """It has no limit of its own."""
        self.killed = False
        """SIGTERM was not enough."""
        self.left = 0
        """Processes below it that could not be ended."""
        self.took_ms = 0.0
        """From its start to its end, by the launch host's clock: our own delays are not in it."""

    @property
    def ended(self) -> bool:
        return self._ended.done()

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
            kill_group(self.pid, signal.SIGTERM)
            if await self.within(grace_s):
                return
            self.killed = True
        kill_group(self.pid, signal.SIGKILL)
        if not await self.within(KILL_S):
            raise HarnessError(f"process {self.pid} of the agent could not be ended")

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know of how it ended."""
        return (*((KILLED,) if self.killed else ()), *survived(self.left))

    def finish(self, status: int | None, took_ms: float = 0.0, left: int = 0) -> None:
        """Told by the launcher: it has ended, and so has what it left behind, save `left` processes."""
        if not self._ended.done():
            self.status, self.took_ms, self.left = status, took_ms, left
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
