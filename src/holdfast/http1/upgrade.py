"""A request that upgrades its connection to a websocket. It passes unchanged, after the faults."""

from __future__ import annotations

from typing import NoReturn

from holdfast.http1.client import UpstreamFailed
from holdfast.http1.exchange import Exchange
from holdfast.http1.heads import HEAD_LIMIT, RawFields, RequestHead, drop_hop_by_hop, format_header_lines, join_head
from holdfast.http1.relay import join
from holdfast.http1.reply_parser import ReplyParser
from holdfast.streams.socket_stream import UPGRADE, BodyBuffer, SocketStream

_OURS = frozenset((b"proxy-authorization", b"proxy-connection"))
_END = b"\r\n\r\n"
_BODY_LIMIT = 1_000_000


class ConnectionUpgraded(Exception):
    """The request was answered with a separate connection, which faults do not read."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{status}: a websocket, into which faults do not look")
        self.status = status


def is_upgrade_request(head: RequestHead) -> bool:
    """Return whether it requests a websocket; other upgrades are offers, which a proxy need not forward."""
    return (head.get("upgrade") or "").strip().lower() == "websocket"


async def forward_upgrade(exchange: Exchange, head: RequestHead, wire: SocketStream) -> NoReturn:
    """Forward the request over `wire`, with the given head, then copy bytes in both directions until they end.

    Raises Upgraded at the end, to keep faults from treating it as a reply that they could change.
    """
    try:
        status, fields, data = await _perform_handshake(wire, _write_head(head))
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


def _write_head(head: RequestHead) -> bytes:
    return join_head(
        f"{head.method} {head.target} HTTP/1.1".encode("latin-1"), format_header_lines(head.headers, _OURS)[0]
    )


async def _perform_handshake(wire: SocketStream, request: bytes) -> tuple[int, RawFields, bytes]:
    """Status and headers of the reply; the rest is the beginning of the websocket, or the body of a rejection."""
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
    if inflow.waiting:
        data += inflow.read_available()
    head, _, rest = data.partition(_END)
    fields = [line.partition(b":") for line in head.split(b"\r\n")[1:]]
    return 101, tuple((name, value.strip()) for name, _, value in fields), rest


async def _read_refusal(data: bytes, inflow: BodyBuffer) -> tuple[int, RawFields, bytes]:
    reply = _CompleteReply()
    replies = ReplyParser(reply)
    replies.expect("GET")
    while not reply.over:
        replies.feed(data)
        if not reply.over:
            data = await inflow.get()
            if not data:
                replies.on_disconnect(True)
    if reply.failure is not None:
        raise reply.failure
    return reply.status, reply.headers, bytes(reply.body)


class _CompleteReply:
    """A complete reply."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: RawFields = ()
        self.body = bytearray()
        self.over = False
        self.failure: Exception | None = None

    def on_reply_head(self, status: int, reason: str, headers: RawFields, length: int | None) -> None:
        self.status, self.headers = status, headers

    def on_reply_body(self, data: bytes) -> None:
        self.body += data
        if len(self.body) > _BODY_LIMIT:
            self.over = True

    def on_reply_end(self, reusable: bool) -> None:
        self.over = True

    def on_reply_failure(self, failure: Exception) -> None:
        self.over, self.failure = True, failure
