"""Keeps an agent in our own process from ending the run unnoticed, or from holding it for ever."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from asyncio import _set_running_loop
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

from holdfast.agents.loaded import AskFunction

_ENDED = b"error: the agent ended Holdfast's own process (isolation: inline); use isolation: fresh\n"
_HARNESS = 3
"""The exit code of a run that our side could not finish."""


class Guard:
    """`os._exit` is told and is never a success; a signal is felt also while the agent blocks."""

    def __init__(self) -> None:
        self._asking = False
        self._pid = os.getpid()
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._exit: Callable[[int], NoReturn] = os._exit
        os._exit = self._ended
        self._handlers: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            self._handlers = {n: signal.signal(n, self._signalled) for n in (signal.SIGINT, signal.SIGTERM)}

    def around(self, ask: AskFunction) -> AskFunction:
        """The same call; a signal that comes while it blocks ends it.

        A plain agent may run an event loop of its own: it must not see that it is called from ours.
        """
        loop = self._loop

        def guarded(prompt: str) -> Any:
            self._asking = True
            _set_running_loop(None)
            try:
                return ask(prompt)
            finally:
                _set_running_loop(loop)
                self._asking = False

        return guarded

    def close(self) -> None:
        """Leaves the process as it was found."""
        os._exit = self._exit  # type: ignore[assignment]  # it was read from there
        for number, before in self._handlers.items():
            signal.signal(number, signal.SIG_DFL if before is None else before)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if self._asking:
            raise KeyboardInterrupt
        if self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)

    def _ended(self, status: int) -> NoReturn:
        if os.getpid() != self._pid:  # a process that the agent forked ends as it likes
            self._exit(status)
        os.write(2, _ENDED)
        self._exit(_HARNESS)
