"""Connections on which nothing is asked: let go of after a while, so that none fill the process up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from weakref import WeakKeyDictionary

from holdfast.http1.server import ClientConnection

IDLE_S = 75.0
"""A browser opens a new one when it needs it."""
MOST = 200
"""Connections at once; more of them are idle, or somebody who holds them open on purpose."""
SWEEP_S = 2.0


class IdleConnections:
    """Knows on which connections something is being answered, and since when on the others nothing is."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._busy: set[ClientConnection] = set()
        self._since: WeakKeyDictionary[ClientConnection, float] = WeakKeyDictionary()

    def begin(self, connection: ClientConnection) -> None:
        self._busy.add(connection)

    def end(self, connection: ClientConnection) -> None:
        self._busy.discard(connection)
        self._since[connection] = self._clock()

    def sweep(self, connections: Iterable[ClientConnection]) -> None:
        """Ends those that were idle too long; of too many, those that were idle longest."""
        now = self._clock()
        idle = sorted(
            (one for one in connections if one not in self._busy), key=lambda one: self._since.setdefault(one, now)
        )
        spare = len(idle) + len(self._busy) - MOST
        for number, one in enumerate(idle):
            if number < spare or now - self._since[one] > IDLE_S:
                one.abort()

    async def keep_sweeping(self, connections: Callable[[], Iterable[ClientConnection]]) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            self.sweep(list(connections()))
