"""Keeps fresh servers ready: every trial gets one that nobody has used."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from holdfast.model.trial import Trial
from holdfast.protocols import WarmService
from holdfast.world.services.endings import Endings

MOST = 2
"""Servers that wait: more would only use memory, since starting one takes less time than a trial."""


S = TypeVar("S", bound=WarmService)


class SpareKeeper(Generic[S]):
    """Starts the next server while a trial runs. Nothing is shared, so `alone` is how it always is."""

    def __init__(
        self,
        start: Callable[[], Awaitable[S]],
        done: Callable[[], None],
        endings: Endings | None = None,
        taken: Callable[[S], None] = lambda service: None,
    ) -> None:
        """`done` is called when no server is left, `taken` with each one that a trial gets."""
        self._start = start
        self._done = done
        self._endings = endings or Endings()
        self._taken = taken
        self._waiting: deque[asyncio.Task[S]] = deque()
        self._wanted = 1
        self._refill()

    async def provide(self, trial: Trial, *, alone: bool) -> S:
        while self._waiting:
            spare = self._waiting.popleft()
            if not spare.done():
                self._wanted = MOST
            try:
                found = await spare
            finally:
                self._refill()
            if found.alive:
                break
            await found.close()
        else:
            found = await self._start()
        self._taken(found)
        return found

    async def close(self) -> None:
        """No server of it is left."""
        spares, self._wanted = list(self._waiting), 0
        self._waiting.clear()
        for spare in spares:
            spare.cancel()
        ended = await asyncio.gather(*spares, return_exceptions=True)
        try:
            for server in ended:
                if not isinstance(server, BaseException):
                    await server.close()
            await self._endings.wait()
        finally:
            self._done()

    def _refill(self) -> None:
        while len(self._waiting) < self._wanted:
            self._waiting.append(asyncio.ensure_future(self._start()))
