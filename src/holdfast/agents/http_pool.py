"""A pool of connections that knows of each request how far it got: dialled, connected, taken by the server.

aiohttp's own tracing tells the first two, and costs a third of a request; nothing there tells the last.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from struct import unpack_from
from typing import cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

_ACKED_AT = 120
"""Offset of tcpi_bytes_acked in Linux's struct tcp_info; it is there since 4.1."""


@dataclass(slots=True)
class RequestProgress:
    """How far one request got."""

    dialled: bool = False
    connected: bool = False
    line: PooledConnection | None = None
    response: aiohttp.ClientResponse | None = None
    chunks: list[bytes] = field(default_factory=list)
    cut: bool = False

    @property
    def untaken(self) -> bool:
        """A reused connection was lost without a reply, and nothing shows that the server took the request."""
        return not self.dialled and self.response is None and self.line is not None and not self.line.taken


attempt_now: ContextVar[RequestProgress] = ContextVar("attempt_now")
"""The attempt that the current task is making."""


class PooledConnection(ResponseHandler):
    """One connection. When it is lost it still knows whether the server's side had taken the last request."""

    acked_before: int | None = None
    taken = False

    def begin(self) -> None:
        """A further request starts on this connection."""
        self.acked_before = _acked(self.transport)

    def data_received(self, data: bytes) -> None:
        """Fails the body too when its framing breaks; aiohttp alone would leave its reader waiting."""
        super().data_received(data)
        body = self._payload
        if self.exception() is not None and body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(aiohttp.ClientPayloadError("broken framing"))

    def connection_lost(self, exc: BaseException | None) -> None:
        acked = _acked(self.transport)
        self.taken = acked is not None and self.acked_before is not None and acked > self.acked_before
        super().connection_lost(exc)


class Pool(aiohttp.TCPConnector):
    """Connections to one agent, kept for the next request unless `keep` is false."""

    def __init__(self, *, limit: int, keep: bool = True) -> None:
        super().__init__(limit=limit, force_close=not keep)
        self._factory = cast("partial[ResponseHandler]", partial(PooledConnection, loop=self._loop))

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        attempt, line = attempt_now.get(), connection.protocol
        if not attempt.dialled and isinstance(line, PooledConnection):
            attempt.line = line
            line.begin()
        return connection

    async def _create_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> ResponseHandler:
        attempt = attempt_now.get()
        attempt.dialled = True
        line = await super()._create_connection(req, traces, timeout)
        attempt.connected = True
        return line


def _acked(transport: asyncio.BaseTransport | None) -> int | None:
    """How many bytes the other side's system has acknowledged; None where that cannot be known."""
    sock = transport.get_extra_info("socket") if transport is not None else None
    if sock is None or sys.platform != "linux":
        return None
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ACKED_AT + 8)
    except OSError:
        return None
    return int(unpack_from("=Q", info, _ACKED_AT)[0]) if len(info) == _ACKED_AT + 8 else None
