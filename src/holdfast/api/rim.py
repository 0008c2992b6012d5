"""Where Python code comes in: called plainly, or awaited, also where an event loop runs already."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from holdfast.runner.interrupts import Interrupts

T = TypeVar("T")
RimWork = Callable[[Interrupts], T]


class RunInterrupted(Exception):
    """The work was stopped before its end; what it had done by then is stored."""


def here(work: RimWork[T]) -> T:
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


async def awaited(work: RimWork[T]) -> T:
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
