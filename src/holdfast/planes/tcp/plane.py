"""The TCP plane: carries one trial's connections to one of its services, and applies faults to them."""

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
"""Maximum number of concurrent connections; more than any of the services accepts."""


class TcpPlane:
    """One listener of one service. Several listeners of one service share their counters."""

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
        """Serve a listening socket, which it closes in the end; data from the service is delayed by `latency_ms`.

        `wire` is the protocol, from the traits of the service's kind. `wrote` is called for every database write.
        """
        plane = cls(TrialService(upstream, service, wire, context, latency_ms, wrote), sock.getsockname()[1])
        loop = asyncio.get_running_loop()
        plane._server = await loop.create_server(lambda: ConnectionEnd(plane._accept), sock=sock)
        return plane

    def _accept(self, client: ConnectionEnd) -> None:
        if len(self._open) >= AT_ONCE:
            service = self._service
            service.context.sink.note(
                f"more than {AT_ONCE} connections to {service.name} concurrently: further ones were closed"
            )
            client.abort()
            return
        connection = ServiceConnection(self._service, self.port, client)
        task = asyncio.get_running_loop().create_task(connection.run())
        self._open[task] = connection
        task.add_done_callback(self._handle_end)

    def _handle_end(self, task: asyncio.Task[None]) -> None:
        self._open.pop(task, None)
        if not task.cancelled() and (broken := task.exception()) is not None:
            why = f"carrying a connection to {self._service.name} failed: {type(broken).__name__}: {broken}"
            self._service.context.sink.add_error(why, "bug")

    def stop_faults(self) -> None:
        """Connections from now on do not come from the agent, and faults do not act on them."""
        self._service.stop_faults()

    async def close(self) -> None:
        """Close every connection; afterwards no task and no socket is left, and the ledger is complete."""
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
