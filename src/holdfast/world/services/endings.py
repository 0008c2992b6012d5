"""Servers that are on their way out: they are told to end at once, and are waited for later."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Endings:
    """Ends in the background what a trial is done with; a failure is told by whoever waits for them all."""

    def __init__(self) -> None:
        self._under_way: set[asyncio.Task[None]] = set()
        self._failed: list[BaseException] = []

    def begin(self, ending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(ending)
        self._under_way.add(task)
        task.add_done_callback(self._ended)

    async def wait(self) -> None:
        """Until nothing is left of any; raises the first failure."""
        while self._under_way:
            await asyncio.wait(self._under_way)
        if self._failed:
            raise self._failed[0]

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (broken := task.exception()) is not None:
            self._failed.append(broken)
