"""A port forward: a loopback port of this machine that forwards to one port inside a sandbox."""

from __future__ import annotations

import asyncio
from socket import socket

from holdfast.errors import HarnessError
from holdfast.protocols.sandbox import Sandbox
from holdfast.streams.connection_end import ConnectionEnd, join

AT_ONCE = 256
"""Maximum number of concurrent connections: further ones are closed, to bound memory."""
CONNECT_S = 10.0
"""Timeout for a program inside that listens but accepts no connection."""


class PortForward:
    """One forwarded port of this machine. Close it after use."""

    def __init__(self, sandbox: Sandbox, port: int) -> None:
        self._sandbox = sandbox
        self._inside = port
        self.port = 0
        """The local address."""
        self._server: asyncio.Server
        self._open: dict[asyncio.Task[None], ConnectionEnd] = {}

    @classmethod
    async def open(cls, sandbox: Sandbox, port: int, at: socket | None = None) -> PortForward:
        """Forward to a port inside, from the socket `at`, which it closes in the end, or from a free port."""
        forward = cls(sandbox, port)
        loop = asyncio.get_running_loop()
        if at is None:
            forward._server = await loop.create_server(lambda: ConnectionEnd(forward._accept), "127.0.0.1", 0)
        else:
            forward._server = await loop.create_server(lambda: ConnectionEnd(forward._accept), sock=at)
        forward.port = int(forward._server.sockets[0].getsockname()[1])
        return forward

    async def is_accepting(self, port: int) -> bool:
        """Return whether something inside accepts connections there."""
        try:
            async with asyncio.timeout(CONNECT_S):
                (await self._sandbox.connect(port)).close()
        except OSError:
            return False
        return True

    async def close(self) -> None:
        """Close every connection; afterwards no task and no socket is left."""
        self._server.close()
        under_way = dict(self._open)
        for task in under_way:
            task.cancel()
        if under_way:
            await asyncio.wait(under_way)
            await asyncio.sleep(0)  # aborted transports close their sockets

    def _accept(self, outer: ConnectionEnd) -> None:
        if len(self._open) >= AT_ONCE:
            outer.abort()
            return
        task = asyncio.get_running_loop().create_task(self._forward(outer))
        self._open[task] = outer
        task.add_done_callback(self._open.pop)

    async def _forward(self, outer: ConnectionEnd) -> None:
        """Copy in both directions until both have ended; if nothing listens inside, the connection is closed."""
        inner = ConnectionEnd()
        try:
            await self._connect_inside(inner)
            await join(outer, inner)
        except (OSError, HarnessError):  # nothing listens, nothing answers in time, or the sandbox is gone
            outer.close()
        except BaseException:
            outer.abort()
            raise
        finally:
            inner.abort()

    async def _connect_inside(self, inner: ConnectionEnd) -> None:
        async with asyncio.timeout(CONNECT_S):
            sock = await self._sandbox.connect(self._inside)
        try:
            await asyncio.get_running_loop().create_connection(lambda: inner, sock=sock)
        except BaseException:
            sock.close()
            raise
