"""The server's side of a connection: requests answered one after another, by one task."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.http1.exchange import SPARE, BadRequest, Exchange
from holdfast.http1.frame import framed
from holdfast.http1.presence import has_left
from holdfast.http1.request_parser import RequestParser
from holdfast.http1.socket_stream import SocketStream

if TYPE_CHECKING:
    import ssl

    from holdfast.http1.server import Listener

Serve: TypeAlias = Callable[[Exchange], Awaitable[None]]
"""Answers one request."""

LINGER_S = 1.0
"""So long a client may go on sending after its answer: closing earlier could destroy the answer on its way."""
WATCH_S = 0.02
"""How often a client is looked at whose leaving nothing tells us: as soon as a person could tell."""


class ClientConnection(SocketStream):
    """One client of a listener."""

    def __init__(self, listener: Listener, serve: Serve, *, born: int, outer: ClientConnection | None = None) -> None:
        super().__init__()
        self.outer = outer
        """The connection that this one took over: a CONNECT, whose tunnel speaks HTTP again."""
        self.born = born
        """The listener's epoch when the client came."""
        self.peer = ("", 0)
        """Host and port of the client."""
        self.listener = listener
        self.serve = serve
        self.task: asyncio.Task[None] | None = None
        self._requests = RequestParser(self)
        self.into = self._requests.feed
        self._busy = False
        self._taken = False
        self._half = False
        """The client has asked all that it will, and reads on."""

    @property
    def idle(self) -> bool:
        """Between two requests."""
        return not self._busy and not self._taken and self._requests.idle

    @property
    def root(self) -> ClientConnection:
        """The connection as the client made it."""
        return self if self.outer is None else self.outer.root

    @property
    def tls(self) -> bool:
        return self.raw is not None and self.transport is not self.raw

    @property
    def left(self) -> bool:
        """Whether the client has closed its end, though we may not have read so yet."""
        if self.gone or self.raw is None:
            return True
        return has_left(self.raw.get_extra_info("socket"), half=self._plain)

    @property
    def _plain(self) -> bool:
        """No TLS is spoken, on whatever transport: that has no half-open connections."""
        return self.transport.get_extra_info("sslcontext") is None

    async def closed(self) -> None:
        """Waits until the connection is gone."""
        await self.over.wait()

    async def leaving(self) -> None:
        """Waits until the client has left, also while nothing is read from it; then the connection is gone."""
        while not self.left:
            try:
                async with asyncio.timeout(WATCH_S if self.held else None):
                    await self.over.wait()
            except TimeoutError:
                continue
        self.abort()

    # -- how it begins and ends -----------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        accepted = self.raw is None
        super().connection_made(transport)
        if accepted:
            self._accepted()

    def _accepted(self) -> None:
        address = self.transport.get_extra_info("peername")
        self.peer = (str(address[0]), int(address[1])) if isinstance(address, tuple) else ("", 0)
        if not self.listener.admit(self):
            self.abort()
        else:
            self._begin(self._run())

    async def adopt(self, outer: ClientConnection, context: ssl.SSLContext, early: bytes) -> None:
        """Goes on with TLS on another connection's transport; raises OSError if the client will not."""
        self.raw, self.transport, self.peer = outer.raw, outer.transport, outer.peer
        self.listener.forget(outer)
        self.listener.admit(self)
        await self.secure(outer.transport, context, early)
        self._begin(self._run())

    def succeed(self, outer: ClientConnection, early: bytes) -> None:
        """Goes on with another connection's transport, as it is; `early` was read from it before."""
        self.raw, self.peer = outer.raw, outer.peer
        self.listener.forget(outer)
        self.listener.admit(self)
        outer.transport.set_protocol(self)
        self.connection_made(outer.transport)
        self._begin(self._run())
        if not self.held:
            self.transport.resume_reading()
        if early:
            self.data_received(early)

    def eof_received(self) -> bool:
        """A client that has asked and ends its own direction may still read: it is served, and watched."""
        if not self._half and not self._reads_on():
            return super().eof_received()
        if not self._half:
            self._half = True
            self._requests.lost()
            self.loop.call_later(WATCH_S, self._watch)
        return True

    def _reads_on(self) -> bool:
        """Whether all of a request has come, its reply is due, and the client's end is open."""
        asked = not self.idle and not self._taken and not self._requests.partial
        return asked and self.other is None and self._plain and not self.left

    def _watch(self) -> None:
        """Nothing more is read that would tell when the client leaves."""
        if self.left:
            self.abort()
        elif not self._taken:
            self.loop.call_later(WATCH_S, self._watch)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.listener.forget(self)
        self._requests.lost()

    def _begin(self, serving: Coroutine[Any, Any, None]) -> None:
        self.task = self.loop.create_task(serving)
        self.listener.watch(self.task)

    # -- for its exchange -----------------------------------------------------------------------
    def stay(self, exchange: Exchange) -> None:
        """The exchange is answered in HTTP although it offered something else."""
        self._requests.stay(exchange)

    def hand_over(self) -> bytes:
        """Ends HTTP here; what the client has sent beyond its request. Nothing is read until it is asked for."""
        self._taken = True
        return self._requests.hand_over()

    # -- serving --------------------------------------------------------------------------------
    async def _run(self) -> None:
        clean = False
        try:
            while (entry := await self._requests.next()) is not None:
                self._busy = True
                if not await self._answer(entry):
                    break
                self._busy = False
            clean = True
        finally:
            if not self._taken:
                self.close() if clean else self.abort()

    async def _answer(self, entry: Exchange | BadRequest) -> bool:
        """Answers a request; whether the connection can serve another."""
        if isinstance(entry, BadRequest):
            await self._turn_away(entry)
            return False
        try:
            await self.serve(entry)
            if not entry.finished and not entry.gone:
                raise RuntimeError(f"{entry.head.method} was not answered to the end")
        except BadRequest as refused:
            await self._turn_away(refused, entry)
            return False
        except Exception as error:
            if not self.gone:
                self.listener.tell(entry, error)
            self.abort()
            return False
        if self._taken or self.gone:
            return False
        return entry.inflow.ended or await self._spent(entry) if entry.keep_alive else await self._last(entry)

    async def _last(self, exchange: Exchange) -> bool:
        """Sees to it that the last reply arrives."""
        if not exchange.inflow.ended:
            await self._linger()
        return False

    async def _spent(self, exchange: Exchange) -> bool:
        """Reads what is left of a request that nobody read to its end, if it is short and comes soon."""
        spent = 0
        try:
            async with asyncio.timeout(LINGER_S):
                while data := await exchange.inflow.get():
                    spent += len(data)
                    if spent > SPARE:
                        break
                else:
                    return True
        except (TimeoutError, BadRequest, ConnectionResetError):
            pass
        await self._linger()
        return False

    async def _turn_away(self, refused: BadRequest, exchange: Exchange | None = None) -> None:
        """Says what is wrong with a request, unless an answer was begun, and ends the connection."""
        self.listener.refused(self, refused)
        if exchange is not None and exchange.answered:
            self.abort()
        elif not self.gone:
            text = f"{refused}\n".encode()
            headers = [("Content-Type", "text/plain; charset=utf-8")]
            frame = framed(refused.status, headers, len(text), method="GET", modern=True, keep_alive=False)
            self.send(frame.head + text)
            await self._linger()

    async def _linger(self) -> None:
        """Ends our side, and reads and drops what the client still sends, for a moment."""
        self.into = self.spill
        self.release_all()
        self.end()
        try:
            async with asyncio.timeout(LINGER_S):
                await self.over.wait()
        except TimeoutError:
            self.abort()
