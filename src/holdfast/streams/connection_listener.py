"""A listener whose connections are served side by side, and the one that forwards them to another address."""

from __future__ import annotations

import asyncio
import os
from socket import create_server, socket
from typing import Self

from holdfast.errors import HarnessError
from holdfast.streams.connection_end import ConnectionEnd, Upstream, dial, join


class ConnectionListener:
    """Serves each connection in a task of its own. Close it after use."""

    limit = 1_000
    """Maximum number of concurrent connections: further ones are closed, to bound memory."""

    def __init__(self) -> None:
        self.port = 0
        """The local port; 0 for a Unix socket."""
        self._server: asyncio.Server
        self._open: dict[asyncio.Task[None], ConnectionEnd] = {}

    async def serve(self, client: ConnectionEnd) -> None:
        """Serve one connection. If the listener closes meanwhile, this is cancelled and `client` is aborted."""
        raise NotImplementedError

    def note_limit(self) -> None:
        """Note that a connection over the limit is closed."""

    async def listen(self, at: socket | str | None = None) -> Self:
        """Listen on a socket, which it closes in the end, at the path of a new Unix socket, or on a free loopback port.

        A Unix socket is for its owner only.
        """
        loop = asyncio.get_running_loop()
        if isinstance(at, str):
            self._server = await loop.create_unix_server(lambda: ConnectionEnd(self._accept), at)
            os.chmod(at, 0o600)
        else:
            sock = create_server(("127.0.0.1", 0)) if at is None else at
            self.port = sock.getsockname()[1]
            self._server = await loop.create_server(lambda: ConnectionEnd(self._accept), sock=sock)
        return self

    async def close(self) -> None:
        """Close every connection; afterwards no task and no socket is left."""
        self._server.close()
        # A copy, because each task removes itself when it ends.
        served = dict(self._open)
        for task in served:
            task.cancel()
        if served:
            await asyncio.wait(served)
        for client in served.values():
            client.abort()
        await self._server.wait_closed()
        await asyncio.sleep(0)  # aborted transports close their sockets

    def _accept(self, client: ConnectionEnd) -> None:
        if len(self._open) >= self.limit:
            self.note_limit()
            client.abort()
            return
        task = asyncio.get_running_loop().create_task(self.serve(client))
        self._open[task] = client
        task.add_done_callback(self._open.pop)


class Forwarder(ConnectionListener):
    """Forwards each connection; it is closed if nothing answers there in time."""

    def __init__(self, upstream: Upstream) -> None:
        super().__init__()
        self._upstream = upstream

    async def serve(self, client: ConnectionEnd) -> None:
        try:
            server = await dial(self._upstream)
        except (OSError, HarnessError):  # nothing listens, nothing answers in time, or the sandbox is gone
            client.close()
            return
        try:
            await join(client, server)
        finally:
            server.abort()
