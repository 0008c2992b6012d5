"""The server: `serve` listens, and answers each request with one function."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Container
from functools import partial
from typing import TYPE_CHECKING

from holdfast.http1.client_connection import ClientConnection
from holdfast.http1.exchange import Exchange
from holdfast.http1.heads import BadRequest, RequestHead
from holdfast.http1.request_loop import RequestLoop, Serve
from holdfast.http1.tunnel import Tunnel

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["BadRequest", "ClientConnection", "Exchange", "Listener", "RequestHead", "Serve", "Tunnel", "serve"]

CLOSING_S = 5.0


async def serve(
    handler: Serve,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    sock: socket.socket | None = None,
    tls: SSLContext | None = None,
) -> Listener:
    """Listens, and calls `handler` once a request; an exception in it aborts the connection, and `on_error` is told."""
    listener = Listener(handler)
    await listener.listen(host, port, sock, tls)
    return listener


class Listener:
    """A place where clients connect."""

    def __init__(self, handler: Serve) -> None:
        self.port = 0
        self.connections: set[ClientConnection] = set()
        """Those that are alive."""
        self.epoch = 0
        """Set by the owner; each connection remembers the value at its accept."""
        self.on_error: Callable[[ClientConnection, Exception], None] | None = None
        """Told what went wrong in the handler."""
        self.on_refused: Callable[[ClientConnection, BadRequest], None] | None = None
        """Told of a request that could not be read, and what its client got."""
        self._new_connection = partial(ClientConnection, self, partial(RequestLoop, handler))
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def listen(
        self, host: str, port: int, sock: socket.socket | None = None, tls: SSLContext | None = None
    ) -> None:
        """Opens the socket, or takes the one given; `port` 0 lets the system choose."""
        loop = asyncio.get_running_loop()
        if sock is not None:
            self._server = await loop.create_server(self._new_connection, sock=sock, backlog=1024, ssl=tls)
        else:
            self._server = await loop.create_server(self._new_connection, host, port, backlog=1024, ssl=tls)
        name = self._server.sockets[0].getsockname()
        self.port = int(name[1]) if isinstance(name, tuple) else 0

    def drop(self, made: Container[ClientConnection] | None = None) -> None:
        """Ends connections that clients made (or all), and what took them over, TLS for one.

        Idle ones are closed; those under way are aborted, and whoever answers on them is stopped.
        """
        for connection in list(self.connections):
            if made is None or connection.root in made:
                if connection.idle and connection.outer is None:
                    connection.close()
                else:
                    self._end(connection)

    async def close(self) -> None:
        """Ends everything; afterwards no task and no socket is left."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        ending = list(self.connections)
        for connection in ending:
            self._end(connection)
        tasks = self._tasks - {task for task in (asyncio.current_task(),) if task is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSING_S)
        for connection in ending:
            await connection.closed()
        if self._server is not None:
            await self._server.wait_closed()

    # -- for its connections --------------------------------------------------------------------
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

    def forget(self, connection: ClientConnection) -> None:
        self.connections.discard(connection)

    def failed(self, connection: ClientConnection, method: str, error: Exception) -> None:
        if self.on_error is not None:
            self.on_error(connection, error)
        else:
            loop = asyncio.get_running_loop()
            loop.call_exception_handler({"message": f"answering {method} failed", "exception": error})

    def refused(self, connection: ClientConnection, refused: BadRequest) -> None:
        if self.on_refused is not None:
            self.on_refused(connection, refused)

    def _end(self, connection: ClientConnection) -> None:
        """Aborts a connection, and stops whoever is answering on it, unless that is who asks for it."""
        connection.abort()
        answering: ClientConnection | None = connection
        while answering is not None:
            if answering.task is not None and answering.task is not asyncio.current_task():
                answering.task.cancel()
            answering = answering.outer
