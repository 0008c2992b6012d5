"""A Lobby: one address for all trials that are forked from one process, told apart by the process that connects.

An agent makes its model's client when it is imported, once for all trials, and the client keeps the address that it
found then. So the address cannot say which trial a request is of; the kernel can.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.planes.describe import said
from holdfast.planes.http1.server import Connection, Exchange, Refused, serve
from holdfast.planes.mooring import Aboard, Address, Board, Variables, berthed, unread
from holdfast.planes.peers import owner
from holdfast.protocols import Trip

WAIT_S = 0.5
"""A process may connect before we are told that it was made."""


class Lobby(Address):
    """One listener on loopback for many trials at once."""

    def __init__(self, board: Board, variables: Variables) -> None:
        super().__init__(secrets.token_urlsafe(18), variables)
        self._board = board
        self._aboard: dict[int, Aboard] = {}
        self._of: dict[Connection, tuple[int, Aboard | None]] = {}
        """Connections whose process is known, as they were made: inside of one, TLS may have taken it over."""

    @classmethod
    async def open(cls, board: Board, variables: Variables) -> Lobby:
        lobby = cls(board, variables)
        lobby.listener = await serve(lobby.answer)
        lobby.listener.on_error = lobby._wrong
        lobby.listener.on_refused = lobby._unread
        return lobby

    @contextmanager
    def carry(self, trip: Trip) -> Iterator[Callable[[int], None]]:
        """Serves a trial from the moment its process is known: the given function is called with it."""
        aboard = self._board(self, trip)
        pids: list[int] = []

        def began(pid: int) -> None:
            pids.append(pid)
            self._aboard[pid] = aboard

        try:
            yield began
        finally:
            for pid in pids:
                self._aboard.pop(pid, None)
                self._leave(pid)
            aboard.close()

    async def close(self) -> None:
        await self.listener.close()

    async def answer(self, exchange: Exchange) -> None:
        await berthed(exchange, self.token, await self._whose(exchange))

    def _leave(self, pid: int) -> None:
        """Cuts off what the trial's process still had under way."""
        theirs = {one for one, (held, _) in self._of.items() if held == pid}
        for connection in theirs:
            del self._of[connection]
        self.listener.drop(theirs)

    def _wrong(self, exchange: Exchange, error: Exception) -> None:
        _, aboard = self._of.get(exchange.connection.root, (0, None))
        if aboard is not None:
            aboard.broke(f"a plane broke: {said(error)}")

    def _unread(self, connection: Connection, refused: Refused) -> None:
        _, aboard = self._of.get(connection.root, (0, None))
        if aboard is not None:
            aboard.note(unread(refused))

    async def _whose(self, exchange: Exchange) -> Aboard | None:
        connection = exchange.connection.root
        known = self._of.get(connection)
        if known is not None:
            return known[1] if self._aboard.get(known[0]) is known[1] else None
        for _ in range(10):
            pid = owner(connection.peer, self.port, list(self._aboard))
            if pid is not None:
                self._forget_closed()
                self._of[connection] = (pid, self._aboard[pid])
                return self._aboard[pid]
            await asyncio.sleep(WAIT_S / 10)
        self._of[connection] = (0, None)  # of no trial: a process that inherits it later does not make it one's own
        return None

    def _forget_closed(self) -> None:
        alive = {one.root for one in self.listener.connections}
        for connection in [one for one in self._of if one not in alive]:
            del self._of[connection]
