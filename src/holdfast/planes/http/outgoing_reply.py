"""Sends a reply, as faults have left it, to the client of the proxy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from math import ceil
from typing import Any

import msgspec

from holdfast.http1.client import UpstreamReply
from holdfast.http1.heads import drop_hop_by_hop, read_body_framing
from holdfast.http1.server import Exchange
from holdfast.model.delivery import Delivery
from holdfast.planes.describe import is_same_value, render_value, to_json
from holdfast.planes.http.request import chain_chunks, decode_body, encode_body, to_readable_text
from holdfast.planes.http.request_trace import RequestTrace
from holdfast.planes.paced_delivery import PacedDelivery, drop_ineffective
from holdfast.planes.recorded_tools import ReplayedReply
from holdfast.protocols.fault import Dropped, Failed, ReceivedReply, Reply, Sleep, TimedOut

_JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
_BODY_HEADERS = ("content-encoding", "content-md5", "digest", "content-digest", "repr-digest", "etag")
"""Headers that are no longer valid when the body changes."""
_BODILESS = (204, 304)
"""Statuses whose replies have no body."""


@dataclass(frozen=True)
class UpstreamAnswer:
    """The reply from upstream."""

    incoming: UpstreamReply
    value: Any
    """The body as faults receive it."""
    data: bytes
    """The body as it arrived."""
    rest: AsyncIterator[bytes] | None
    """The rest of the body, if it is longer than what faults receive."""
    text_before: str
    """The value as text, before a fault could change it in place."""

    def is_original(self, value: Any) -> bool:
        """Return whether a value is the one from upstream."""
        return is_same_value(value, self.value) and render_value(value) == self.text_before


@dataclass(frozen=True)
class _Outgoing:
    status: int
    headers: list[tuple[str, str]]
    body: bytes
    length: int | None
    rest: AsyncIterator[bytes] | None = None


async def send_answer(
    exchange: Exchange, reply: Reply, answered: UpstreamAnswer | None, trace: RequestTrace, sleep: Sleep
) -> None:
    """Send a reply: unchanged as it arrived, or its new value in the original content type.

    Raises ConnectionResetError, with nothing sent, if the client has left.
    """
    exchange.ensure_connected()
    # Without a body there is nothing that a changed value or a slow delivery could show; a replayed reply still decides
    # the status.
    if exchange.head.method == "HEAD" or (answered is not None and answered.incoming.status in _BODILESS):
        trace.mark_undelivered("the reply has no body")
        reply = Reply("" if answered is None else answered.value) if not isinstance(reply, ReplayedReply) else reply
    out = _build_outgoing(reply, answered)
    if answered is not None and answered.rest is not out.rest:  # the rest of the body is not needed
        answered.incoming.abort()
    trace.status, value, delivery = out.status, reply.value, reply.delivery
    trace.output = value if isinstance(value, str) else to_json(value)
    if out.rest is None:
        delivery, idle = drop_ineffective(delivery, len(out.body))
        if idle:
            trace.mark_undelivered("the reply is too small for this fault", parts=idle)
    if out.rest is None and delivery == Delivery(size=delivery.size):
        await exchange.respond(out.status, out.headers, out.body)
    else:
        await _send_paced(exchange, out, delivery, trace, sleep)


def render_received(reply: Reply, answered: UpstreamAnswer | None) -> ReceivedReply:
    """Return a reply as the client receives it: its head, and the part of its body that the delivery lets through."""
    out = _build_outgoing(reply, answered)
    limit = reply.delivery.limit
    body = out.body if limit is None else out.body[:limit]
    length = None if reply.delivery.close_ms else out.length
    kind = next((value for name, value in out.headers if name.lower() == "content-type"), None)
    return ReceivedReply((out.status, out.headers, length, body), to_readable_text(kind, body))


def _build_outgoing(reply: Reply, answered: UpstreamAnswer | None) -> _Outgoing:
    if answered is None:  # a fault answered without calling upstream
        status = reply.status if isinstance(reply, ReplayedReply) else 200
        if status in _BODILESS:
            return _Outgoing(status, [], b"", 0)
        is_text = isinstance(reply.value, str | bytes)
        if isinstance(reply, ReplayedReply):  # a recording may hold JSON as text
            is_text = is_text and _is_plain_text(reply.value)
        kind = TEXT if is_text else _JSON
        body = encode_body(reply.value, kind)
        return _Outgoing(status, [("content-type", kind)], body, len(body))
    incoming = answered.incoming
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in drop_hop_by_hop(incoming.headers)]
    if answered.is_original(reply.value):
        length = read_body_framing(incoming.headers).length if answered.rest is not None else len(answered.data)
        return _Outgoing(incoming.status, headers, answered.data, length, answered.rest)
    body = encode_body(reply.value, incoming.get("content-type"))
    remaining = [(name, value) for name, value in headers if name.lower() not in _BODY_HEADERS]
    return _Outgoing(incoming.status, remaining, body, len(body))


def _is_plain_text(body: Any) -> bool:
    """Return whether it is text other than a JSON object or list."""
    return isinstance(body, str) and isinstance(decode_body(_JSON, body.encode(errors="replace")), str)


async def _send_paced(
    exchange: Exchange, out: _Outgoing, delivery: Delivery, trace: RequestTrace, sleep: Sleep
) -> None:
    if delivery.close_ms:
        exchange.keep_alive = False
    pacing = PacedDelivery(delivery)
    # A chunked body keeps the connection open: the client cannot know that nothing more comes.
    await exchange.start(out.status, out.headers, None if delivery.close_ms else out.length)
    async for chunk in chain_chunks(out.body, out.rest):
        try:
            for wait_ms, piece in pacing.split_pieces(chunk):
                await sleep(wait_ms)
                await exchange.write(piece)
        except ConnectionError:
            read = out.body[: pacing.sent].decode("utf-8", "replace")
            trace.mark_undelivered("the client disconnected before it arrived", read=read)
            raise
        if pacing.is_cut_off:
            trace.error_type = "connection_lost"
            exchange.connection.close()
            return
    await sleep(delivery.close_ms)
    await exchange.finish()


async def send_failure(exchange: Exchange, failed: Failed, trace: RequestTrace) -> None:
    """Send a failure as an HTTP client observes it: a status, a lost connection, or nothing at all.

    Raises ConnectionResetError if the client has left.
    """
    exchange.ensure_connected()
    trace.output = str(failed)
    if isinstance(failed, TimedOut):
        trace.error_type = "timeout"
        if failed.kind == "hang":
            await exchange.connection.wait_until_left()
        exchange.break_connection()
    elif isinstance(failed, Dropped):
        trace.error_type = "connection_lost"
        exchange.break_connection(reset=failed.kind != "closed")
    else:
        trace.status = failed.status or 500
        headers = [("content-type", TEXT if _is_plain_text(failed.body) else _JSON)]
        if failed.retry_after_s is not None:
            headers.append(("retry-after", str(ceil(failed.retry_after_s))))
        body = failed.body if failed.body is not None else {"error": {"code": trace.status, "message": str(failed)}}
        text = body.encode(errors="replace") if isinstance(body, str) else msgspec.json.encode(body)
        trace.output = text.decode()
        await exchange.respond(trace.status, headers, text)
