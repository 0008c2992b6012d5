"""Threads that read files for the viewer, and that nobody waits for when it ends.

Those of the standard library are waited for when Python ends: Ctrl-C would not end a viewer that reads a large run.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class DaemonWorkers(Executor):
    """So many threads, each begun when there is work for it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._begun = 0
        self._waiting: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._guard = threading.Lock()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._waiting.put((future, lambda: fn(*args, **named)))
        with self._guard:
            if not self._idle.acquire(blocking=False) and self._begun < self._most:
                self._begun += 1
                threading.Thread(target=self._work, name="viewer", daemon=True).start()
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = True) -> None:
        """What waits is dropped; what is being done ends by itself, and is waited for by nobody."""
        while cancel_futures:
            try:
                entry = self._waiting.get_nowait()
            except queue.Empty:
                break
            if entry is not None:
                entry[0].cancel()
        for _ in range(self._begun):
            self._waiting.put(None)

    def _work(self) -> None:
        while (entry := self._next()) is not None:
            future, do = entry
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(do())
                except BaseException as broken:
                    future.set_exception(broken)
            del entry, future, do  # a result may be large, and this thread may wait for long

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        try:
            return self._waiting.get_nowait()
        except queue.Empty:
            self._idle.release()
            return self._waiting.get()
