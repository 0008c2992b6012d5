"""A proxy that reads nothing of what it passes on: what two sockets and Python cost, to hold the gateway against."""

from __future__ import annotations

import asyncio
from typing import cast


class _End(asyncio.Protocol):
    """One connection, and the other that its bytes go to."""

    def __init__(self, port: int = 0) -> None:
        self._port = port
        self.other: _End | None = None
        self.transport: asyncio.Transport
        self._early = b""
        self._joining: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are not derived from it
        if self._port:
            self._joining = asyncio.get_running_loop().create_task(self._join())

    async def _join(self) -> None:
        _, other = await asyncio.get_running_loop().create_connection(_End, "127.0.0.1", self._port)
        other.other, self.other = self, other
        if self._early:
            other.transport.write(self._early)

    def data_received(self, data: bytes) -> None:
        if self.other is None:
            self._early += data
        else:
            self.other.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.other is not None:
            self.other.transport.close()


async def byte_proxy(port: int) -> asyncio.Server:
    """Listens, and joins each connection to one to this port."""
    return await asyncio.get_running_loop().create_server(lambda: _End(port), "127.0.0.1", 0, backlog=1024)
