"""A listener and its connections: identifies each client, detects when it leaves, and replaces TCP with TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Container
from functools import partial
from typing import Any, Protocol, TypeAlias

from holdfast.http1.heads import BadRequest, RequestHead
from holdfast.streams.socket_stream import SocketStream
from holdfast.streams.sockets import has_left

CLOSING_S = 5.0
"""How long a closing listener waits for its handlers."""
WATCH_S = 0.02
"""How often to check for a client that leaves without a signal: too fast for a person to notice."""


class Requests(Protocol):
    """The requests of one client, read and answered in order; see `RequestLoop`."""

    has_left_http: bool

    @property
    def is_idle(self) -> bool: ...

    @property
    def has_due_reply(self) -> bool: ...

    async def run(self) -> None: ...

    def feed(self, data: bytes) -> None: ...

    def on_disconnect(self) -> None: ...

    def stay_in_http(self, head: RequestHead) -> None: ...

    def hand_over(self) -> bytes: ...


MakeRequests: TypeAlias = "Callable[[ClientConnection], Requests]"


class ClientConnection(SocketStream):
    """One client of a listener."""

    def __init__(self, owner: Listener, requests: MakeRequests, outer: ClientConnection | None = None) -> None:
        super().__init__()
        self.outer = outer
        """The connection that this one took over: a CONNECT whose tunnel carries HTTP again."""
        self.born: int = owner.epoch if outer is None else outer.born
        """The listener's epoch when the client connected."""
        self.peer = ("", 0)
        """Host and port of the client."""
        self.owner = owner
        self.task: asyncio.Task[None] | None = None
        self.requests = requests(self)
        self.on_data = self.requests.feed
        self._half = False
        """Whether the client sends no more requests, but still reads."""
        self._is_plain = True
        """Whether the connection has no TLS, which does not support half-open connections. A closed one cannot tell."""

    @property
    def root(self) -> ClientConnection:
        """The original connection of the client."""
        return self if self.outer is None else self.outer.root

    @property
    def has_left(self) -> bool:
        """Whether the client has closed its end, even if that was not read yet."""
        if self.is_gone or self.raw is None:
            return True
        return has_left(self.raw.get_extra_info("socket"), half=self._is_plain)

    async def wait_closed(self) -> None:
        """Wait until the connection is gone."""
        await self.over.wait()

    async def wait_until_left(self) -> None:
        """Wait until the client has left, even while nothing is read from it; then the connection is gone."""
        while not self.has_left:
            try:
                async with asyncio.timeout(WATCH_S if self.holds else None):
                    await self.over.wait()
            except TimeoutError:
                continue
        self.abort()

    # -- start and end --------------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        is_new = self.raw is None
        super().connection_made(transport)
        self._is_plain = transport.get_extra_info("sslcontext") is None
        if is_new:
            address = transport.get_extra_info("peername")
            self.peer = (str(address[0]), int(address[1])) if isinstance(address, tuple) else ("", 0)
            self.owner.accept(self)

    async def adopt_with_tls(self, outer: ClientConnection, context: ssl.SSLContext, early: bytes) -> None:
        """Continue with TLS on another connection's transport; raise OSError if the client refuses."""
        self.raw, self.transport, self.peer = outer.raw, outer.transport, outer.peer
        self.owner.replace(outer, self)
        await self.start_tls(outer.transport, context, early)
        self.owner.start(self)

    def adopt_plain(self, outer: ClientConnection, early: bytes) -> None:
        """Continue with another connection's transport unchanged; `early` holds bytes already read from it."""
        self.raw, self.peer = outer.raw, outer.peer
        self.owner.replace(outer, self)
        outer.transport.set_protocol(self)
        self.connection_made(outer.transport)
        self.owner.start(self)
        if not self.holds:
            self.transport.resume_reading()
        if early:
            self.data_received(early)

    def eof_received(self) -> bool:
        """Keep serving a client that has closed its own direction after its request: it may still read."""
        # After an end of data a client may have closed, or only ended its own direction while it waits for the reply,
        # as some tools do. The kernel can tell for clients on this machine; everywhere else the end is taken for a
        # close.
        if not self._half:
            expects_reply = self.requests.has_due_reply and self.other is None and self._is_plain and not self.has_left
            if not expects_reply:
                return super().eof_received()
            self._half = True
            self.requests.on_disconnect()
            self.loop.call_later(WATCH_S, self._watch_client)
        return True

    def _watch_client(self) -> None:
        """Watch the socket, because nothing is read any more that would show when the client leaves."""
        if self.has_left:
            self.abort()
        elif not self.requests.has_left_http:
            self.loop.call_later(WATCH_S, self._watch_client)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.owner.connections.discard(self)
        self.requests.on_disconnect()


class Listener:
    """A listening socket."""

    def __init__(self, requests: MakeRequests) -> None:
        self.port = 0
        self.connections: set[ClientConnection] = set()
        """The open connections."""
        self.epoch = 0
        """Set by the owner; each connection remembers the value at its accept."""
        self.on_error: Callable[[ClientConnection, Exception], None] | None = None
        """Called with an error in the handler."""
        self.on_refused: Callable[[ClientConnection, BadRequest], None] | None = None
        """Called with a request that could not be parsed, and the status sent to its client."""
        self._new_connection = partial(ClientConnection, self, requests)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def listen(
        self, host: str, port: int, sock: socket.socket | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        """Open the socket, or use the given one; `port` 0 lets the system choose."""
        where: dict[str, Any] = {"host": host, "port": port} if sock is None else {"sock": sock}
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._new_connection, **where, backlog=1024, ssl=tls)
        name = self._server.sockets[0].getsockname()
        self.port = int(name[1]) if isinstance(name, tuple) else 0

    def drop(self, connections: Container[ClientConnection] | None = None) -> None:
        """End the clients' connections (or all), and their successors, such as TLS.

        Idle ones are closed; active ones are aborted, and their handlers are stopped.
        """
        for connection in list(self.connections):
            if connections is None or connection.root in connections:
                if connection.requests.is_idle and connection.outer is None:
                    connection.close()
                else:
                    self._abort_connection(connection)

    async def close(self) -> None:
        """End everything; afterwards no task and no socket is left."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        ending = list(self.connections)
        for connection in ending:
            self._abort_connection(connection)
        tasks = self._tasks - {task for task in (asyncio.current_task(),) if task is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSING_S)
        for connection in ending:
            await connection.wait_closed()
        if self._server is not None:
            await self._server.wait_closed()

    # -- called by its connections --------------------------------------------------------------
    def accept(self, connection: ClientConnection) -> None:
        if self._closed:
            connection.abort()
        else:
            self.connections.add(connection)
            self.start(connection)

    def replace(self, outer: ClientConnection, inner: ClientConnection) -> None:
        self.connections.discard(outer)
        if not self._closed:
            self.connections.add(inner)

    def start(self, connection: ClientConnection) -> None:
        connection.task = task = connection.loop.create_task(connection.requests.run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def report_error(self, connection: ClientConnection, method: str, error: Exception) -> None:
        if self.on_error is not None:
            self.on_error(connection, error)
        else:
            loop = asyncio.get_running_loop()
            loop.call_exception_handler({"message": f"answering {method} failed", "exception": error})

    def report_bad_request(self, connection: ClientConnection, refused: BadRequest) -> None:
        if self.on_refused is not None:
            self.on_refused(connection, refused)

    def _abort_connection(self, connection: ClientConnection) -> None:
        """Abort a connection and stop its handler, unless the handler itself calls this."""
        connection.abort()
        answering: ClientConnection | None = connection
        while answering is not None:
            if answering.task is not None and answering.task is not asyncio.current_task():
                answering.task.cancel()
            answering = answering.outer
