"""Copies bytes: a reply to the client, a connection in both directions, or a websocket after its handshake."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from holdfast.http1.exchange import Exchange, Tunnel
from holdfast.http1.heads import HEAD_LIMIT, RawFields, RequestHead, drop_hop_by_hop, format_header_lines, join_head
from holdfast.http1.reply_parser import ReplyCollector
from holdfast.http1.upstream_connection import UpstreamReply
from holdfast.streams.socket_stream import UPGRADE, BodyBuffer, SocketStream
from holdfast.streams.sockets import UpstreamFailed


async def forward_reply(
    exchange: Exchange, incoming: UpstreamReply, *, tap: Callable[[bytes], None] | None = None
) -> None:
    """Forward an upstream reply as it arrives; `tap` receives each piece of its body.

    Raises UpstreamFailed if the upstream ends early, after cutting the client's connection at that position, and
    ConnectionResetError if the client leaves, after aborting the upstream's connection.
    """
    try:
        headers = drop_hop_by_hop(incoming.headers)
        await exchange.start(incoming.status, headers, incoming.length, reason=incoming.reason)
        while data := await incoming.inflow.get():
            if tap is not None:
                tap(data)
            await exchange.write(data)
        await exchange.finish()
    except UpstreamFailed:
        exchange.break_connection()
        raise
    finally:
        incoming.abort()


async def join(a: Tunnel, b: SocketStream) -> None:
    """Copy in both directions until both have ended. The end of a direction is passed on to the other side."""
    client = a.connection
    try:
        if early := a.take_early():
            b.send(early)
        # From here on the two sockets feed each other directly, and a full one pauses the other. Reading is released
        # last: what arrives earlier would go to a side that is not connected yet.
        client.other, b.other = b, client
        client.on_data, b.on_data = b.send, client.send
        client.release(UPGRADE)
        b.release(UPGRADE)
        if client.is_gone:
            b.close()
        await client.over.wait()
        await b.over.wait()
    finally:
        client.abort()
        b.abort()


_PROXY_HEADERS = frozenset((b"proxy-authorization", b"proxy-connection"))
_END = b"\r\n\r\n"
_BODY_LIMIT = 1_000_000


class ConnectionUpgraded(Exception):
    """The request was answered with a separate connection, which faults do not read."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{status}: a websocket, which faults do not read")
        self.status = status


def is_upgrade_request(head: RequestHead) -> bool:
    """Return whether it requests a websocket; other upgrades are offers, which a proxy need not forward."""
    return (head.get("upgrade") or "").strip().lower() == "websocket"


async def forward_upgrade(exchange: Exchange, head: RequestHead, wire: SocketStream) -> NoReturn:
    """Forward the request over `wire`, with the given head, then copy bytes in both directions until they end.

    Raises ConnectionUpgraded at the end, to keep faults from treating it as a reply that they could change.
    """
    try:
        lines, _ = format_header_lines(head.headers, _PROXY_HEADERS)
        request = join_head(f"{head.method} {head.target} HTTP/1.1".encode("latin-1"), lines)
        status, fields, data = await _perform_handshake(wire, request)
        if status == 101:
            await exchange.respond(101, fields)
            tunnel = await exchange.take_over()
            if data:
                await tunnel.write(data)
            await join(tunnel, wire)
        else:
            await exchange.respond(status, drop_hop_by_hop(fields), data)
    finally:
        wire.abort()
    raise ConnectionUpgraded(status)


async def _perform_handshake(wire: SocketStream, request: bytes) -> tuple[int, RawFields, bytes]:
    """Return status and headers of the reply, then the beginning of the websocket or the body of a rejection."""
    inflow = BodyBuffer(wire)
    wire.on_data, wire.on_lost = inflow.feed, inflow.end
    wire.release(UPGRADE)
    wire.send(request)
    data = b""
    while _END not in data and len(data) <= HEAD_LIMIT:
        if not (more := await inflow.get()):
            raise UpstreamFailed("closed", "the connection was closed before a reply came")
        data += more
    if data.split(b" ", 2)[1:2] != [b"101"]:
        return await _read_refusal(data, inflow)
    wire.hold(UPGRADE)
    data += inflow.read_available()
    head, _, rest = data.partition(_END)
    fields = [line.partition(b":") for line in head.split(b"\r\n")[1:]]
    return 101, tuple((name, value.strip()) for name, _, value in fields), rest


async def _read_refusal(data: bytes, inflow: BodyBuffer) -> tuple[int, RawFields, bytes]:
    collector = ReplyCollector("GET", _BODY_LIMIT)
    while not collector.over:
        collector.feed(data)
        if not collector.over:
            data = await inflow.get()
            if not data:
                collector.on_disconnect(True)
    reply = collector.reply
    if reply.failure is not None:
        raise reply.failure
    return reply.status or 0, reply.headers, reply.body
