"""Connections to one agent: so many at once, kept between requests."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypeAlias

from holdfast.agents.http_connection import AgentConnection, HttpReply
from holdfast.http1.failures import UpstreamFailed
from holdfast.http1.outgoing_request import Endpoint

if TYPE_CHECKING:
    from ssl import SSLContext


Taken: TypeAlias = Callable[[], bool]
"""Whether it is known that the agent took the request: something was seen of it meanwhile."""


class NotConnected(Exception):
    """No connection could be made; the cause is why."""

    def __init__(self, failed: UpstreamFailed) -> None:
        super().__init__(failed.message)
        self.failed = failed


class HttpPool:
    """Up to `limit` connections. Open it inside a running loop; close it after use."""

    def __init__(self, server: Endpoint, *, limit: int, keep: bool, body_limit: int) -> None:
        self._server = server
        self._keep = keep
        self._body_limit = body_limit
        self._free = limit
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._idle: list[AgentConnection] = []
        self._open: set[AgentConnection] = set()

    async def ask(self, method: str, request: bytes, deadline: float, taken: Taken = bool) -> tuple[HttpReply, bool]:
        """What came back until `deadline`, and whether it took a second connection. NotConnected if there was none.

        A kept connection that ends before any byte of a reply is nobody's doing: a server may close what is idle at
        any time. The request is then made once more, on a new one; unless it is known to be taken: then the agent had
        it, and asking again would hide what it did, or have it do it twice.
        """
        if self._free:
            self._free -= 1
        elif not await self._turn(deadline):
            return HttpReply(late=True), False
        try:
            return await self._ask(method, request, deadline, taken)
        finally:
            self._next()

    async def close(self) -> None:
        """Ends every connection."""
        connections = list(self._open)
        for connection in connections:
            connection.abort()
        for connection in connections:
            await connection.over.wait()

    async def _turn(self, deadline: float) -> bool:
        """Waits until another request has ended; false if none does in time."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout_at(deadline):
                await turn
        except BaseException as over:
            if turn.done() and not turn.cancelled():
                self._next()  # it had come, and nobody is there to take it
            if not isinstance(over, TimeoutError):
                raise
            return False
        return True

    def _next(self) -> None:
        """A request has ended: the next one's turn."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    async def _ask(self, method: str, request: bytes, deadline: float, taken: Taken) -> tuple[HttpReply, bool]:
        connection = self._kept()
        if connection is not None:
            reply = await connection.ask(method, request, deadline)
            if not reply.unheard or taken():
                self._give_back(connection)
                return reply, False
        fresh = await self._connect(deadline)
        reply = await fresh.ask(method, request, deadline)
        self._give_back(fresh)
        return reply, connection is not None

    def _kept(self) -> AgentConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable:
                return connection
        return None

    def _give_back(self, connection: AgentConnection) -> None:
        if self._keep and connection.reusable:
            self._idle.append(connection)
        else:
            connection.abort()

    async def _connect(self, deadline: float) -> AgentConnection:
        server = self._server
        connection = AgentConnection(self._body_limit)
        context = trusted() if server.scheme == "https" else None
        left_s = deadline - connection.loop.time()
        try:
            await connection.connect(server.host, server.port, left_s, context, server.host)
        except UpstreamFailed as failed:
            raise NotConnected(failed) from failed.__cause__
        if not connection.lost:
            self._open.add(connection)
            connection.ending = partial(self._open.discard, connection)
        return connection


def trusted() -> SSLContext:
    """Whom servers are checked against: the system's trust, or what the user's variables name. Slow to make."""
    return _trusted(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@lru_cache(1)
def _trusted(file: str | None, folder: str | None) -> SSLContext:
    import ssl

    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
