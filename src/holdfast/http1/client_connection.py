"""The server's side of a connection: who the client is, whether it is still there, and what takes the place of TCP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from holdfast.http1.heads import BadRequest
from holdfast.streams.presence import has_left
from holdfast.streams.socket_stream import SocketStream

if TYPE_CHECKING:
    import ssl

WATCH_S = 0.02
"""How often a client is looked at whose leaving nothing tells us: as soon as a person could tell."""


class ConnectionOwner(Protocol):
    """The listener of a connection: keeps it, and learns what goes wrong on it."""

    @property
    def epoch(self) -> int:
        """A number that the listener's owner raises; a connection remembers its value at accept."""
        ...

    def accept(self, connection: ClientConnection) -> None:
        """Keeps a new connection and answers its requests, or aborts it if the listener is closed."""
        ...

    def replace(self, outer: ClientConnection, inner: ClientConnection) -> None:
        """`inner` now speaks on the transport of `outer`."""
        ...

    def start(self, connection: ClientConnection) -> None:
        """Starts the task that answers the requests of a connection."""
        ...

    def forget(self, connection: ClientConnection) -> None:
        """The connection is gone."""
        ...

    def failed(self, connection: ClientConnection, method: str, error: Exception) -> None:
        """A request with this method could not be answered: our failure."""
        ...

    def refused(self, connection: ClientConnection, refused: BadRequest) -> None:
        """A request could not be read."""
        ...


class Requests(Protocol):
    """What a client asks on one connection, and who answers it."""

    @property
    def idle(self) -> bool:
        """Between two requests."""
        ...

    @property
    def due(self) -> bool:
        """All of a request has come, and its reply has not gone."""
        ...

    @property
    def taken(self) -> bool:
        """HTTP has ended here, the connection has not."""
        ...

    def feed(self, data: bytes) -> None: ...

    def lost(self) -> None:
        """The client sends no more."""
        ...

    async def run(self) -> None:
        """Answers one request after another; ends the connection."""
        ...


MakeRequests: TypeAlias = "Callable[[ClientConnection], Requests]"


class ClientConnection(SocketStream):
    """One client of a listener."""

    def __init__(self, owner: ConnectionOwner, requests: MakeRequests, outer: ClientConnection | None = None) -> None:
        super().__init__()
        self.outer = outer
        """The connection that this one took over: a CONNECT, whose tunnel speaks HTTP again."""
        self.born: int = owner.epoch if outer is None else outer.born
        """The listener's epoch when the client connected."""
        self.peer = ("", 0)
        """Host and port of the client."""
        self.owner = owner
        self.task: asyncio.Task[None] | None = None
        self.requests = requests(self)
        self.on_data = self.requests.feed
        self._half = False
        """The client has asked all that it will, and reads on."""

    @property
    def idle(self) -> bool:
        """Between two requests."""
        return self.requests.idle

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
        is_new = self.raw is None
        super().connection_made(transport)
        if is_new:
            address = transport.get_extra_info("peername")
            self.peer = (str(address[0]), int(address[1])) if isinstance(address, tuple) else ("", 0)
            self.owner.accept(self)

    async def adopt(self, outer: ClientConnection, context: ssl.SSLContext, early: bytes) -> None:
        """Goes on with TLS on another connection's transport; raises OSError if the client will not."""
        self.raw, self.transport, self.peer = outer.raw, outer.transport, outer.peer
        self.owner.replace(outer, self)
        await self.secure(outer.transport, context, early)
        self.owner.start(self)

    def succeed(self, outer: ClientConnection, early: bytes) -> None:
        """Goes on with another connection's transport, as it is; `early` was read from it before."""
        self.raw, self.peer = outer.raw, outer.peer
        self.owner.replace(outer, self)
        outer.transport.set_protocol(self)
        self.connection_made(outer.transport)
        self.owner.start(self)
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
            self.requests.lost()
            self.loop.call_later(WATCH_S, self._watch)
        return True

    def _reads_on(self) -> bool:
        """Whether all of a request has come, its reply is due, and the client's end is open."""
        return self.requests.due and self.other is None and self._plain and not self.left

    def _watch(self) -> None:
        """Nothing more is read that would tell when the client leaves."""
        if self.left:
            self.abort()
        elif not self.requests.taken:
            self.loop.call_later(WATCH_S, self._watch)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.owner.forget(self)
        self.requests.lost()
