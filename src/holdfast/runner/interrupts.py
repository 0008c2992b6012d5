"""Signals that end a run in order: results so far are stored, and the run can be resumed."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Awaitable
from types import TracebackType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""Signals besides SIGINT, which asyncio's own runner turns into an interrupt."""


class Interrupts:
    """While this is open, a signal cancels the work. A second signal does not prevent storing the results.

    A signal that is ignored (nohup) stays ignored.
    """

    def __init__(self) -> None:
        self._working: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = False
        self._handled: list[signal.Signals] = []

    def stop(self) -> None:
        """Cancel the work as a signal would, from any thread, even before it has begun."""
        self._stopped = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has just ended by itself
                self._loop.call_soon_threadsafe(self._stop)

    def __enter__(self) -> Interrupts:
        self._loop = asyncio.get_running_loop()
        if threading.current_thread() is threading.main_thread():  # no other thread receives signals
            self._handled = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        for number in self._handled:
            asyncio.get_running_loop().add_signal_handler(number, self._stop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in self._handled:
            asyncio.get_running_loop().remove_signal_handler(number)

    async def run_to_end(self, work: Awaitable[None]) -> bool:
        """Return whether the work finished; False if a signal ended it."""
        # A signal cancels the task once. While the results are stored afterwards, `_working` is None, so a second
        # signal finds nothing to cancel and cannot leave half a file.
        task = self._working = asyncio.current_task()
        assert task is not None
        if self._stopped:
            task.cancel()
        try:
            await work
        except asyncio.CancelledError:
            task.uncancel()
            return False
        finally:
            self._working = None
        return True

    def _stop(self) -> None:
        if self._working is not None:
            self._working.cancel()
            self._working = None
