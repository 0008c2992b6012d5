"""The client: requests to upstream servers, over pooled connections."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeAlias

from holdfast.http1.heads import Fields
from holdfast.http1.outgoing_request import Endpoint, OutgoingRequest, build_request, parse_endpoint
from holdfast.http1.reply_parser import CollectedReply
from holdfast.http1.upstream_connection import ConnectionKey, ConnectionPool, UpstreamConnection, UpstreamReply
from holdfast.streams.socket_stream import UPGRADE, SocketStream
from holdfast.streams.sockets import FailureKind, NotConnected, UpstreamFailed

__all__ = ["FailureKind", "UpstreamFailed", "UpstreamReply", "Upstreams", "WasAccepted"]

WasAccepted: TypeAlias = Callable[[], bool]
"""Whether the server is known to have accepted the request: something of it was observed in the meantime."""

_CONNECT_S = 10.0
IDLE_S = 15.0
IDLE_LIMIT = 256
"""Maximum number of idle connections kept per server."""


class Upstreams:
    """A client with its pooled connections."""

    def __init__(
        self,
        trust: Callable[[], ssl.SSLContext] | None = None,
        *,
        idle_s: float = IDLE_S,
        max_idle: int = IDLE_LIMIT,
        lenient: bool = False,
    ) -> None:
        """`trust` creates the TLS context, on the first https URL.

        `max_idle` is the number of idle connections per server. `lenient`: replies may have lines that end in LF alone,
        and invalid headers.
        """
        self._pool = ConnectionPool(idle_s, max_idle, lenient=lenient)
        self._create_trust = trust
        self._trust: ssl.SSLContext | None = None

    async def send(
        self,
        method: str,
        url: str,
        headers: Fields = (),
        body: bytes | AsyncIterator[bytes] | None = None,
        *,
        connect_s: float = _CONNECT_S,
        read_s: float = 300.0,
        addresses: Sequence[str | None] = (None,),
        once: bool = False,
    ) -> UpstreamReply:
        """Send a request; return the reply as soon as its head is there.

        Holdfast sets hop-by-hop headers and `Content-Length`. With an iterator as body a given length is kept,
        otherwise the body is chunked. The request goes to the first of the `addresses` that accepts connections; None
        means whatever the URL's host resolves to. `read_s` is how long the server may be silent. `once` is for a write:
        it uses a new connection, because a stale pooled connection could make us send it twice. Raises UpstreamFailed,
        and ValueError for a request that would break its framing.
        """
        place = parse_endpoint(url)
        request = build_request(method, place, headers, body)
        refused = UpstreamFailed("dns", f"{place.host} has no address")
        for address in addresses:
            key = (place.scheme, place.host, place.port, address or place.host)
            try:
                return await self._send_to(key, place, request, connect_s, read_s, once)
            except UpstreamFailed as failed:
                if failed.kind != "refused":  # otherwise nothing was sent, and another address may work
                    raise
                refused = failed
        raise refused

    async def _send_to(
        self, key: ConnectionKey, place: Endpoint, request: OutgoingRequest, connect_s: float, read_s: float, once: bool
    ) -> UpstreamReply:
        connection = None if once else self._pool.pop(key)
        if connection is not None:
            try:
                return await connection.send_request(request, read_s)
            except UpstreamFailed as failed:
                if failed.kind != "closed" or connection.has_received or request.stream is not None:
                    raise  # otherwise the server had closed a connection that was considered open
        connection = await self._connect(key, place, connect_s)
        return await connection.send_request(request, read_s)

    async def collect(
        self, request: OutgoingRequest, place: Endpoint, deadline: float, limit: int, accepted: WasAccepted = bool
    ) -> tuple[CollectedReply, bool]:
        """Collect the reply until `deadline`, on the loop's clock; also returns whether that took a second connection.

        `limit` bounds how much of the body is read. A pooled connection that ends before the first byte of a reply is
        not an error: a server may close an idle connection at any time. The request is then repeated on a new
        connection, unless it is known to be `accepted`: the server had it, and a repetition could hide its effect or
        cause it twice. Raises NotConnected.
        """
        key = (place.scheme, place.host, place.port, place.host)
        reply = CollectedReply()
        connection = self._pool.pop(key)
        if connection is not None:
            await self._collect_reply(connection, request, deadline, limit, reply)
            got_nothing = not connection.has_received and reply.failure is not None and reply.failure.kind == "closed"
            if not got_nothing or accepted():
                return reply, False
            reply.failure = None
        left_s = deadline - asyncio.get_running_loop().time()
        try:
            fresh = await self._connect(key, place, left_s)
        except NotConnected:
            raise
        except UpstreamFailed as failed:
            reply.failure = failed
        else:
            await self._collect_reply(fresh, request, deadline, limit, reply)
        return reply, connection is not None

    async def close(self) -> None:
        """Close every connection, including those in use."""
        await self._pool.close()

    # -- inside ---------------------------------------------------------------------------------
    async def _collect_reply(
        self,
        connection: UpstreamConnection,
        request: OutgoingRequest,
        deadline: float,
        limit: int,
        reply: CollectedReply,
    ) -> None:
        incoming = None
        try:
            incoming = await connection.send_request(request, deadline - connection.loop.time(), in_all=True)
            reply.status, reply.headers = incoming.status, incoming.headers
            while limit >= 0 and (data := await incoming.inflow.get()):
                reply.chunks.append(data[:limit])
                limit -= len(data)
            reply.cut = limit < 0
        except UpstreamFailed as failed:
            reply.late = failed.kind == "timeout"
            reply.failure = None if reply.late else failed
        finally:
            if incoming is not None:
                incoming.abort()

    async def _connect(self, key: ConnectionKey, place: Endpoint, connect_s: float) -> UpstreamConnection:
        if self._pool.is_closed:
            raise UpstreamFailed("closed", "no more requests are sent")
        secure = self.get_tls_context() if place.scheme == "https" else None
        connection = UpstreamConnection(self._pool, key)
        await connection.connect(key[3], place.port, connect_s, secure, place.host)
        self._pool.add(connection)
        return connection

    async def open_stream(self, place: Endpoint, addresses: Sequence[str | None], *, tls: bool) -> SocketStream:
        """Return a dedicated connection to the first of these addresses that accepts one; nothing is read from it yet.

        Raises UpstreamFailed if none does.
        """
        context = self.get_tls_context() if tls else None
        refused = UpstreamFailed("dns", f"{place.host} has no address")
        for address in addresses:
            wire = SocketStream()
            wire.hold(UPGRADE)
            try:
                await wire.connect(address or place.host, place.port, _CONNECT_S, context, place.host)
            except UpstreamFailed as failed:
                refused = failed
            else:
                return wire
        raise refused

    def get_tls_context(self) -> ssl.SSLContext:
        """Return the TLS context for servers; by default the system's trust."""
        if self._trust is None:
            self._trust = (self._create_trust or ssl.create_default_context)()
            self._trust.set_alpn_protocols(["http/1.1"])
        return self._trust
