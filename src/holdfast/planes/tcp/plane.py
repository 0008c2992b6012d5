"""The TCP plane: carries the connections of one trial to one of its services, and breaks those that a fault meets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socket import socket

from holdfast.model.world import Wire
from holdfast.planes.tcp.connection_end import ConnectionEnd, dial
from holdfast.planes.tcp.service_connection import ServiceConnection
from holdfast.planes.weather import step_plane
from holdfast.protocols import Dropped, Step, TrialContext
from holdfast.sqltext.transaction import TransactionStatement

AT_ONCE = 1_000
"""Connections that are carried at a time; more than any of the services takes."""
_STEPS: tuple[Step, ...] = ("tls", "statement", "write", "commit")


class TcpPlane:
    """One listener of one service. Several of one service count together."""

    def __init__(
        self,
        upstream: tuple[str, int] | str,
        service: str,
        wire: Wire,
        context: TrialContext,
        latency_ms: float,
        wrote: Callable[[TransactionStatement], None] | None,
    ) -> None:
        self.service = service
        self.wire = wire
        self.context = context
        self.latency_ms = latency_ms
        self.port = 0
        self.transactions = 0
        """How many are under way."""
        self.faced = context.faces("service", service)
        self.steps = frozenset(step for step in _STEPS if context.faces(step_plane(step), service))
        self.reads_along = bool(wire) and (bool(self.steps) or wrote is not None)
        self._wrote = wrote
        self._upstream = upstream
        self._reached = False
        self._connecting = 0
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
        plane = cls(upstream, service, wire, context, latency_ms, wrote)
        plane.port = sock.getsockname()[1]
        loop = asyncio.get_running_loop()
        plane._server = await loop.create_server(lambda: ConnectionEnd(plane._arrived), sock=sock)
        return plane

    def _arrived(self, client: ConnectionEnd) -> None:
        if len(self._open) >= AT_ONCE:
            self.context.note(f"more than {AT_ONCE} connections to {self.service} at once: the rest was closed")
            client.abort()
            return
        connection = ServiceConnection(self, client)
        task = asyncio.get_running_loop().create_task(connection.run())
        self._open[task] = connection
        task.add_done_callback(self._left)

    def _left(self, task: asyncio.Task[None]) -> None:
        self._open.pop(task, None)
        if not task.cancelled() and (broken := task.exception()) is not None:
            self.context.broke(f"carrying a connection to {self.service} failed: {type(broken).__name__}: {broken}")

    @contextmanager
    def connecting(self) -> Iterator[None]:
        """Around the making of a connection that a fault may meet: which of several comes first is chance."""
        self._connecting += 1
        if self._connecting > 1:
            self.context.overlapped()
        try:
            yield
        finally:
            self._connecting -= 1

    async def reach(self) -> ConnectionEnd:
        """A connection to the service itself. One that was never there is our failure; later it may be the agent's."""
        try:
            end = await dial(self._upstream)
        except OSError as failed:
            why = f"the service {self.service} takes no connection, and no fault is why: {failed or 'timeout'}"
            (self.context.note if self._reached else self.context.broke)(why)
            raise Dropped(why, kind="closed") from failed
        self._reached = True
        return end

    def wrote(self, statement: TransactionStatement) -> None:
        """A write goes to the database."""
        if self._wrote is not None:
            self._wrote(statement)

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
