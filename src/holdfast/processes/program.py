"""A program that Holdfast has started: its state, and how to end it.

When several programs are ended, the failure of one does not keep another open, and a cancellation is never lost.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from math import inf
from typing import Any, TypeVar

from holdfast.errors import HarnessError, SandboxFailed
from holdfast.processes.leftovers import GRACE_S, describe_survivors, kill_group
from holdfast.processes.pipes import Pipes, Tail
from holdfast.protocols.sandbox import CommandResult, Started, Stdio

KILL_S = 10.0
"""Seconds for the system to end a killed process: long, because a busy machine is not the agent's fault."""
KILLED = "it did not end after SIGTERM and was killed"
"""The note for a program that SIGTERM did not end."""
GONE = "its parent process is gone"


MemoryEnd = Callable[[int | None, bool], str]
"""Takes a status and whether Holdfast killed the program; returns how it ran out of memory, empty if it did not."""


class Program:
    """A started program with everything that it starts: one process group, and daemons that left it."""

    def __init__(
        self,
        send: Callable[[int], None] | None = None,
        listen: Callable[[], None] = lambda: None,
        memory_end: MemoryEnd = lambda status, by_us: "",
    ) -> None:
        """`send` delivers a signal if its group cannot be reached; `listen` processes unread reports."""
        self._send = send or (lambda number: kill_group(self.pid, number))
        self._listen = listen
        self._memory_end = memory_end
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.pid = 0
        self.keeper = 0
        """The ancestor of all its processes; 0 if there is none."""
        self.status: int | None = None
        """The waitpid status, once it has ended; None also if its keeper was killed."""
        self.lost = False
        """Whether its launcher died: the program's end is then unknown, and not the agent's fault."""
        self.out_of_memory = ""
        self.killed = False
        """Whether Holdfast killed it."""
        self.notes: tuple[str, ...] = ()
        """Notes for the reader about how it ended."""
        self.took_ms = 0.0
        """Its run time by the launcher's clock: without Holdfast's own delays."""

    @property
    def ended(self) -> bool:
        return self._ended.done()

    @property
    def starved(self) -> bool:
        """Whether the program or its descendants have run out of memory so far."""
        return bool(self._memory_end(signal.SIGKILL, self.killed))

    async def wait_for_end(self, limit_s: float) -> bool:
        """Return whether the program has ended by then. An unread report of its end counts."""
        if not self.ended:
            await asyncio.wait([self._ended], timeout=limit_s)
        if not self.ended:
            self._listen()
        return self.ended

    async def end(self, grace_s: float | None = None) -> None:
        """Send SIGTERM to the group, wait, then send SIGKILL. Nothing of it is left afterwards."""
        grace_s = GRACE_S if grace_s is None else grace_s
        if self.ended:
            return
        # A polite end first: an agent may have children of its own to stop, or a file to finish.
        if grace_s:
            self._send(signal.SIGTERM)
            if await self.wait_for_end(grace_s):
                return
            self.notes = (*self.notes, KILLED)
        self.kill()
        if not await self.wait_for_end(KILL_S):
            raise HarnessError(f"process {self.pid or ''} of the agent could not be ended", code="agent-not-ended")

    def kill(self) -> None:
        self.killed = True
        self._send(signal.SIGKILL)

    def finish(
        self, status: int | None, took_ms: float = 0.0, survivors: int = 0, *, lost: bool = False, note: str = ""
    ) -> None:
        """Record the end of the program. `survivors` is the number of its processes that could not be killed."""
        if not self._ended.done():
            self.status, self.took_ms, self.lost = status, took_ms, lost
            self.out_of_memory = "" if lost else self._memory_end(status, self.killed)
            self.notes = (*self.notes, *describe_survivors(survivors), *([note] if note else []))
            self._ended.set_result(None)


@asynccontextmanager
async def end_on_exit(program: Started) -> AsyncIterator[None]:
    """End the program afterwards, whatever happens; immediately on a cancellation."""
    try:
        yield
    except asyncio.CancelledError:
        await program.end(0.0)
        raise
    except BaseException:
        await program.end()
        raise
    await program.end()


def describe_end(status: int | None) -> str:
    """Describe how the program ended, in words that follow `it`."""
    if status is None:
        return "was stopped from outside"
    if not os.WIFSIGNALED(status):
        return f"exited with code {os.WEXITSTATUS(status)}"
    number = os.WTERMSIG(status)
    names = {s.value: s.name for s in signal.Signals}
    return f"was killed by {names.get(number, f'signal {number}')}"


T = TypeVar("T")


async def await_all(ending: Iterable[Awaitable[T]]) -> list[T]:
    """Await all concurrently, each to its end; then raise the first failure, if there was one."""
    results = await asyncio.gather(*ending, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


async def cancel_and_wait(task: asyncio.Task[T]) -> None:
    """Cancel a task and wait for its end.

    Re-raises its earlier exception, and keeps the caller's own cancellation.
    """
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()


BeginProgram = Callable[[Sequence[str], Mapping[str, str], Stdio], Awaitable[Program]]


async def run_to_end(
    begin: BeginProgram, argv: Sequence[str], env: Mapping[str, str], stdin: bytes, timeout_s: float, keep: int
) -> CommandResult:
    """Run a program with a time limit; raise HarnessError if it was never executed."""
    out, err = Tail(keep, inf), Tail(keep, inf)
    pipes = Pipes(stdin, out, err)
    began = time.monotonic()
    try:
        program = await begin(argv, env, pipes.stdio)
        pipes.close_child_ends()
        try:
            in_time = await program.wait_for_end(timeout_s)
        finally:
            await program.end(0.0)
        # The report of the end may overtake the last output: what is in the pipes by now was printed before it.
        pipes.drain()
    finally:
        pipes.close()
    if program.lost:
        raise SandboxFailed(f"{argv[0]}: {' '.join(program.notes) or GONE}: {err.text.strip()[-500:]}")
    took_ms = program.took_ms or (time.monotonic() - began) * 1e3
    if not in_time:
        return CommandResult(None, out.data, err.data, timed_out=True, duration_ms=took_ms)
    code, number = split_status(program.status)
    return CommandResult(code, out.data, err.data, signal=number, duration_ms=took_ms)


async def run_child(argv: Sequence[str], limit_s: float, **options: Any) -> int | None:
    """Run a program of this machine to its end, then kill what it left; return its exit code.

    None if it did not end within the limit. `options` are those of `create_subprocess_exec`.
    """
    child = await asyncio.create_subprocess_exec(
        *argv, **{"stdin": asyncio.subprocess.DEVNULL, **options}, start_new_session=True
    )
    try:
        async with asyncio.timeout(limit_s):
            return await child.wait()
    except TimeoutError:
        return None
    finally:
        kill_group(child.pid, signal.SIGKILL)
        await child.wait()


def split_status(status: int | None) -> tuple[int | None, int]:
    """Return the exit code and signal of a waitpid status."""
    if status is None:
        return None, 0
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), 0


def is_killed_by(status: int | None, number: int) -> bool:
    """Return whether a signal ended it, even if a shell or bubblewrap in between passed that on."""
    code, signalled = split_status(status)
    return signalled == number or code == 128 + number
