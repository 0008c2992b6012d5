"""Entry points for Python code: plain or awaited calls, also while an event loop is already running."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from holdfast.errors import AgentUnavailable, HoldfastError, SpecError, UserError
from holdfast.report.safe import visible
from holdfast.runner.interrupts import Interrupts

E = TypeVar("E", bound=HoldfastError)
_SHOWN = 30
"""Lines of what an agent that cannot be used said."""


def lines(error: HoldfastError) -> list[str]:
    """What there is to say besides the error's own words: its problems, the agent's trace, what to do."""
    if isinstance(error, SpecError):
        from holdfast.spec.explain import explain

        return explain(error.file, error.source, error.problems).rstrip("\n").splitlines()
    if isinstance(error, AgentUnavailable):
        body = [f"  | {visible(line)}" for line in error.body.splitlines()[:_SHOWN]]
        return [*body, *([visible(error.hint)] if error.hint else [])]
    return [visible(error.hint)] if isinstance(error, UserError) and error.hint else []


def explained(error: E) -> E:
    """The error with those lines: in the message of a SpecError, else as a note, which Python prints below it; once."""
    note = "\n".join(lines(error))
    if isinstance(error, SpecError):
        error.args = (f"{error.summary}\n{note}",)  # what `print(error)` shows, too
    elif note and note not in getattr(error, "__notes__", ()):
        error.add_note(note)
    return error


T = TypeVar("T")
EntryWork = Callable[[Interrupts], T]


class RunInterrupted(Exception):
    """The work was stopped before its end; what it had done by then is stored."""


def here(work: EntryWork[T]) -> T:
    """Does it, in a thread of its own where a loop runs already, as in a notebook.

    An interrupt stops it in order, and is raised when that is done.
    """
    interrupts = Interrupts()
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _done(lambda: work(interrupts))
    with ThreadPoolExecutor(1, "holdfast") as thread:
        done = thread.submit(work, interrupts)
        try:
            wait([done])
        except KeyboardInterrupt:
            interrupts.stop()
            wait([done])
            raise
        return _done(done.result)


def _done(result: Callable[[], T]) -> T:
    try:
        return result()
    except RunInterrupted as stopped:
        raise KeyboardInterrupt(*stopped.args) from None


async def awaited(work: EntryWork[T]) -> T:
    """Does it in a thread, so that the caller's loop goes on; a task that is cancelled stops it in order first."""
    interrupts = Interrupts()
    done = asyncio.ensure_future(asyncio.to_thread(work, interrupts))
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        interrupts.stop()
        await asyncio.wait([done])
        if not done.cancelled():
            done.exception()  # it was looked at: the cancelling is what the caller hears of
        raise
