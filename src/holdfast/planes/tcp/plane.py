"""The TCP plane: carries the connections of one trial to one of its services, and breaks those that a fault meets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from socket import socket

from holdfast.model.world import Wire
from holdfast.planes.tcp.service_connection import ServiceConnection
from holdfast.planes.tcp.trial_service import TrialService
from holdfast.protocols.trial import TrialContext
from holdfast.sqltext.transaction import TransactionStatement
from holdfast.streams.connection_end import ConnectionEnd

AT_ONCE = 1_000
"""Connections that are carried at a time; more than any of the services takes."""


class TcpPlane:
    """One listener of one service. Several of one service count together."""

    def __init__(self, service: TrialService, port: int) -> None:
        self.port = port
        self._service = service
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], ServiceConnection] = {}

    @classmethod
    async def open(
        cls,
        sock: socket,
        upstream: tuple[str, int] | str,
        service: str,
        wire: Wire,
        context: TrialContext,
        *,
        latency_ms: float = 0,
        wrote: Callable[[TransactionStatement], None] | None = None,
    ) -> TcpPlane:
        """Serves a listening socket, which it closes in the end; what comes back is late by `latency_ms`.

        `wire` is the protocol that is spoken there, as the traits of its kind say. `wrote` hears of every write
        that goes to a database.
        """
        plane = cls(TrialService(upstream, service, wire, context, latency_ms, wrote), sock.getsockname()[1])
        loop = asyncio.get_running_loop()
        plane._server = await loop.create_server(lambda: ConnectionEnd(plane._arrived), sock=sock)
        return plane

    def _arrived(self, client: ConnectionEnd) -> None:
        if len(self._open) >= AT_ONCE:
            service = self._service
            service.context.sink.note(f"more than {AT_ONCE} connections to {service.name} at once: the rest was closed")
            client.abort()
            return
        connection = ServiceConnection(self._service, self.port, client)
        task = asyncio.get_running_loop().create_task(connection.run())
        self._open[task] = connection
        task.add_done_callback(self._left)

    def _left(self, task: asyncio.Task[None]) -> None:
        self._open.pop(task, None)
        if not task.cancelled() and (broken := task.exception()) is not None:
            why = f"carrying a connection to {self._service.name} failed: {type(broken).__name__}: {broken}"
            self._service.context.sink.add_error(why, "bug")

    def calm(self) -> None:
        """Whoever connects from now on is not the agent, and meets no fault."""
        self._service.calm()

    async def close(self) -> None:
        """Ends every connection; afterwards no task and no socket is left, and the ledger has all that was felt."""
        if self._server is not None:
            self._server.close()
        carried = dict(self._open)
        for task in carried:
            task.cancel()
        if carried:
            await asyncio.wait(carried)
        for connection in carried.values():
            connection.abort()
        if self._server is not None:
            await self._server.wait_closed()
        await asyncio.sleep(0)  # aborted transports close their sockets
