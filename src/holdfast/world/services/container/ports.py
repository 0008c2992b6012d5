"""Ports of a container as Unix sockets of ours: the container itself has no network."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from socket import socket

from holdfast.errors import HarnessError
from holdfast.streams.connection_end import ConnectionEnd, join

Connect = Callable[[int], Awaitable[socket]]
AT_ONCE = 1_000
"""Connections that are carried at a time; the rest is closed."""


class ContainerPorts:
    """Listens in a folder of its own, and carries what comes to the ports behind it. Close it after use."""

    def __init__(self, folder: Path, connect: Connect) -> None:
        self._folder = folder
        self._connect = connect
        self._servers: list[asyncio.Server] = []
        self._open: dict[asyncio.Task[None], ConnectionEnd] = {}

    async def open(self, ports: Iterable[int]) -> None:
        loop = asyncio.get_running_loop()
        for port in ports:
            server = await loop.create_unix_server(partial(self._end, port), self.path(port))
            os.chmod(self.path(port), 0o600)
            self._servers.append(server)

    def path(self, port: int) -> str:
        """Where a port is found; the name is the one that clients of PostgreSQL look for."""
        return str(self._folder / f".s.PGSQL.{port}")

    async def close(self) -> None:
        """No connection, no task and no socket is left."""
        for server in self._servers:
            server.close()
        carried = dict(self._open)
        for task, client in carried.items():
            task.cancel()
            client.abort()
        if carried:
            await asyncio.wait(carried)
        for server in self._servers:
            await server.wait_closed()
        await asyncio.sleep(0)  # aborted transports close their sockets

    def _end(self, port: int) -> ConnectionEnd:
        return ConnectionEnd(lambda client: self._arrived(client, port))

    def _arrived(self, client: ConnectionEnd, port: int) -> None:
        if len(self._open) >= AT_ONCE:
            client.abort()
            return
        task = asyncio.get_running_loop().create_task(self._carry(client, port))
        self._open[task] = client
        task.add_done_callback(lambda task: self._open.pop(task, None))

    async def _carry(self, client: ConnectionEnd, port: int) -> None:
        behind = ConnectionEnd()
        try:
            await asyncio.get_running_loop().create_connection(lambda: behind, sock=await self._connect(port))
            await join(client, behind)
        except (OSError, HarnessError):  # nothing listens there, or all is gone: the client sees its connection end
            return
        finally:
            client.abort()
            behind.abort()
