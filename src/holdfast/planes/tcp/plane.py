"""The TCP plane: carries one trial's connections to one of its services, and applies faults to them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from msgspec.structs import replace

from holdfast.errors import HarnessError
from holdfast.model.delivery import AS_IT_IS, Delivery, DeliveryPart
from holdfast.planes.tcp.exchanges import ConnectionExchanges
from holdfast.planes.tcp.mysql import MysqlReader
from holdfast.planes.tcp.postgres import PostgresReader
from holdfast.planes.tcp.sinks import ByteSink, CutOff, DelayedSink, PacedSink
from holdfast.planes.tcp.transactions import ConnectionFaults, TrialService
from holdfast.planes.tcp.wire_reader import WireReader
from holdfast.protocols.fault import Call, Dropped, Failed, Reply, TimedOut
from holdfast.streams.connection_end import ConnectionEnd, join
from holdfast.streams.connection_listener import ConnectionListener
from holdfast.streams.sockets import TLS_FAILURE, TLS_HANDSHAKE

ROLLED_BACK_S = 2.0
"""Seconds for a server to notice that its client is gone, before the client sees the failure."""
_READERS: dict[str, type[WireReader]] = {"postgres": PostgresReader, "mysql": MysqlReader}


class ServiceConnection:
    """Carries bytes in both directions, subject to the weather."""

    def __init__(self, service: TrialService, port: int, client: ConnectionEnd) -> None:
        self._service = service
        self._port = port
        self._client = client
        self._server: ConnectionEnd | None = None
        self._n = service.context.injector.count("service", service.name)
        self._observed: set[DeliveryPart] = set()
        self._delivery = AS_IT_IS
        self._exchanges = ConnectionExchanges(service.name, service.wire, self._n, service.context.sink)
        # A tap sees every byte, and the bytes then no longer pass without being copied: only maps are worth that.
        self._follows = service.context.trial.scenario.follows_values
        if self._follows:
            client.add_tap(self._exchanges.record_sent)
        self._steps = ConnectionFaults(service, self._n, self._exchanges)
        self._delayed: DelayedSink | None = None
        self._connected = False
        """Whether no connection fault stopped it."""

    async def run(self) -> None:
        """Run until the connection has ended, whatever happens."""
        try:
            await self._carry()
        except Failed as failed:
            await self._send_failure(failed)
        except CutOff:
            self._client.break_connection(reset=False)
        except HarnessError as broken:
            self._service.context.sink.add_error(str(broken), broken.code)
            self._client.break_connection(reset=True)
        except OSError:  # one side left in the middle
            self._client.break_connection(reset=False)
        finally:
            self._finish()

    async def _carry(self) -> None:
        service = self._service
        if service.has_connection_faults:
            arguments = {"port": self._port, "since_ms": service.context.sink.now() * 1000}
            call = Call("service", service.name, arguments, self._n)
            with service.guard_connecting():
                reply = await service.context.injector.inject(call, self._connect_server, self._wait)
            self._delivery = reply.delivery
        else:
            await self._connect_server(None)
        server = self._server
        if server is None:  # a fault answered without the server
            raise Dropped(f"{service.name}: the connection was closed", kind="closed")
        self._connected = True
        if "tls" in service.steps and service.wire not in _READERS:
            # Whether the client begins with TLS must be known before any byte is forwarded.
            first = await self._client.read()
            self._client.put_back(first)
            if first[:1] == bytes((TLS_HANDSHAKE,)):
                await self._steps.request_tls()
        await self._relay(server)

    async def _connect_server(self, call: Call | None) -> Reply:
        if self._server is None:
            self._server = await self._service.connect()
            if self._follows:
                self._server.add_tap(self._exchanges.record_received)
        return Reply("a connection")

    async def _wait(self, ms: float) -> None:
        """Wait before the client has received anything; end when the client leaves."""
        try:
            async with asyncio.timeout(ms / 1000):
                await self._client.left.wait()
        except TimeoutError:
            return
        raise ConnectionResetError("the client had disconnected")

    # -- both directions ------------------------------------------------------------------------
    async def _relay(self, server: ConnectionEnd) -> None:
        delivery, latency_ms = self._delivery, self._service.latency_ms
        if delivery == AS_IT_IS and not latency_ms and not self._service.reads_messages:
            await join(self._client, server)
            return
        # A delayed end concerns only the client, which waits for it.
        to_server = self._create_sink(server, replace(delivery, close_ms=0.0))
        to_client = self._create_sink(self._client, delivery)
        if delivery.lags or latency_ms:
            to_client = DelayedSink(to_client, self._client, delivery.lags, self._observed, steady_ms=latency_ms)
            self._delayed = to_client
        if self._service.reads_messages:
            reader = _READERS[self._service.wire](self._client, server, to_client, to_server, self._steps)
            await _run_both(reader.forward_requests(), reader.forward_replies())
        else:
            await _run_both(_copy_bytes(self._client, to_server), _copy_bytes(server, to_client))

    def _create_sink(self, end: ConnectionEnd, delivery: Delivery) -> ByteSink:
        return end if delivery == AS_IT_IS else PacedSink(end, delivery, self._observed)

    # -- the end --------------------------------------------------------------------------------
    async def _send_failure(self, failed: Failed) -> None:
        """Present a failure as a socket client observes it."""
        await self._close_server()
        client, context = self._client, self._service.context
        if client.is_gone:
            if not self._connected and failed.injection is not None:
                context.injector.mark_undelivered("service", self._service.name, self._n, injection=failed.injection)
            return
        try:
            await self._show_failure(failed)
        except OSError:  # the client has left
            client.abort()

    async def _show_failure(self, failed: Failed) -> None:
        client = self._client
        if failed.kind == "tls":
            # Accept a TLS request if the protocol has one, and answer the TLS hello with an alert.
            if self._service.wire == "postgres":
                await self._client.write(b"S")
            if self._service.wire == "mysql" or await self._client.read():  # there it has already been read
                await self._client.write(TLS_FAILURE)
        elif failed.kind == "too_many_connections" and self._service.wire in _READERS:
            await _READERS[self._service.wire].reject_client(client)
        elif isinstance(failed, TimedOut) and failed.kind == "hang":
            while await client.read():
                pass
        reset = isinstance(failed, Dropped) and failed.kind != "closed"
        client.break_connection(reset=reset)

    async def _close_server(self) -> None:
        """Close the server's side first, so that its rollback is complete when the client notices."""
        server = self._server
        if server is None:
            return
        server.end_sending()
        try:
            async with asyncio.timeout(ROLLED_BACK_S):
                while await server.read():
                    pass
        except (TimeoutError, OSError):
            self._service.context.sink.note(f"{self._service.name} kept a connection open that its client had lost")
        server.abort()

    def _finish(self) -> None:
        """Close what is open, and remove the parts of a delivery without effect."""
        if self._delayed is not None:
            self._delayed.stop()
        if self._server is not None:
            self._server.close_within(ROLLED_BACK_S)
        self._client.close_within(ROLLED_BACK_S)
        unobserved = self._delivery.parts - self._observed
        if unobserved:
            why = "no data passed that it could act on, or the client had already left"
            self._service.context.injector.mark_undelivered(
                "service", self._service.name, self._n, why, parts=unobserved
            )

    def abort_server(self) -> None:
        """Close the server's side immediately."""
        if self._server is not None:
            self._server.abort()


async def _copy_bytes(source: ConnectionEnd, sink: ByteSink) -> None:
    while data := await source.read():
        await sink.write(data)
    await sink.finish()


async def _run_both(up: Coroutine[Any, Any, None], down: Coroutine[Any, Any, None]) -> None:
    """Run both directions until both have ended, or one fails."""
    loop = asyncio.get_running_loop()
    tasks = {loop.create_task(up), loop.create_task(down)}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class TcpPlane(ConnectionListener):
    """One listener of one service, open after `listen`. Listeners of one service share their counters."""

    def __init__(self, service: TrialService) -> None:
        super().__init__()
        self._service = service

    async def serve(self, client: ConnectionEnd) -> None:
        connection = ServiceConnection(self._service, self.port, client)
        try:
            await connection.run()
        except asyncio.CancelledError:  # the plane closes
            connection.abort_server()
            raise
        except Exception as broken:
            why = f"carrying a connection to {self._service.name} failed: {type(broken).__name__}: {broken}"
            self._service.context.sink.add_error(why, "bug")

    def note_limit(self) -> None:
        service = self._service
        service.context.sink.note(
            f"more than {self.limit} concurrent connections to {service.name}: further ones were closed"
        )

    def stop_faults(self) -> None:
        """Connections from now on do not come from the agent, and faults do not act on them."""
        self._service.stop_faults()
