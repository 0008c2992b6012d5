"""A thread for calls to Ray that may never come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

from holdfast.errors import UserError

T = TypeVar("T")
ANSWER_S = 180.0
"""How long Ray may take to start, to let us in and to let us go: minutes, on a machine that has other things to do."""


class RayThread:
    """Runs what may wait for ever, and cannot be stopped, in a thread that holds nobody up.

    It is one thread from the first call to the last: the processes of a cluster of our own end with the thread that
    started them.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        Thread(target=self._work, name="ray", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._calls.get()()

    async def run(self, call: Callable[[], T], what: str) -> T:
        """What the call returns; UserError, which says `what` has not happened, if that takes too long."""
        done = Future[T]()

        def settle() -> None:
            if not done.set_running_or_notify_cancel():  # from here on nobody can cancel it
                return
            try:
                done.set_result(call())
            except BaseException as failed:
                done.set_exception(failed)

        self._calls.put(settle)
        try:
            async with asyncio.timeout(ANSWER_S):
                return await asyncio.wrap_future(done)
        except TimeoutError:
            raise UserError(f"{what} within {ANSWER_S:g} s", hint="ray status, on its head, tells how it is") from None
