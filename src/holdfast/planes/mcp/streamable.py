"""MCP over streamable HTTP: handles one client request and calls the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from msgspec import Raw

from holdfast.http1.client import UpstreamFailed, UpstreamReply, Upstreams
from holdfast.http1.heads import RawFields, drop_hop_by_hop
from holdfast.http1.server import Exchange
from holdfast.planes import sse
from holdfast.planes.mcp import rpc
from holdfast.planes.mcp.config import Target
from holdfast.planes.mcp.rpc import RpcAnswer, RpcRequest
from holdfast.planes.mcp.session import ClientOutcome, McpSession, build_expired
from holdfast.planes.mcp.trial_state import NAMES_KEPT, McpTrialState
from holdfast.protocols.trial import TrialContext

BODY_LIMIT = 64_000_000
_SILENCE_S = 86_400.0
"""Time limit of a silent stream: it may be silent for the whole trial."""
_JSON, _STREAM = "application/json", "text/event-stream"
_SET_BY_HOLDFAST = frozenset((b"host", b"content-length", b"accept-encoding", b"expect"))
"""Client headers that Holdfast sets itself: it receives bodies uncompressed, because faults read them."""
_DELIVERED_KINDS = ("message", "garbage", "expired")
"""Outcomes that count only if the client receives them."""
_FRAMING = frozenset((b"content-length", b"content-type"))


class StreamEnded(Exception):
    """The server ended its stream without an answer."""


class McpHttpRequest:
    """One exchange with a client about one server."""

    def __init__(
        self,
        exchange: Exchange,
        server: str,
        target: Target,
        upstreams: Upstreams,
        context: TrialContext,
        state: McpTrialState,
    ) -> None:
        self._exchange = exchange
        self._server = server
        self._context = context
        self._target = target
        self._upstreams = upstreams
        self._state = state
        self._session = McpSession(server, context, state, lambda: exchange.connection.has_left)
        self._session_id = exchange.head.get("mcp-session-id")
        self._incoming: UpstreamReply | None = None
        self._events: AsyncIterator[sse.SseEvent] | None = None
        self._event: sse.SseEvent | None = None
        """The event with the answer, if the server answered with a stream."""
        self._is_answered = False
        """Whether the client has the answer: the rest of the stream is not about it."""

    async def serve(self) -> None:
        """Answer the client, or break its connection if a fault says so. End when the client leaves."""
        exchange = self._exchange
        body = await exchange.read_body(BODY_LIMIT) if exchange.head.method == "POST" else None
        message = rpc.read_message(body) if body is not None else None
        request = rpc.read_request(message, body) if message is not None and body is not None else None
        if body is not None and message is None:
            self._session.note_batch(body)
        if self._session_id in self._state.lost_sessions and (request is None or request.method != rpc.INITIALIZE):
            await self._deliver(build_expired(request or RpcRequest("", "", {}, b"")))
        elif request is not None and self._session.can_answer(request):
            await self._work_while_connected(self._answer(request))
        else:
            await self._work_while_connected(self._forward_unchanged(body))

    async def _work_while_connected(self, work: Coroutine[Any, Any, None]) -> None:
        """Work until the client leaves, and then cancel the server's remaining work for it."""
        # Nothing reads the client's connection while the server works, so its departure would go unnoticed. Two tasks
        # race; the loser is cancelled and awaited, so that none outlives the exchange.
        task = asyncio.ensure_future(work)
        left = asyncio.ensure_future(self._exchange.connection.wait_closed())
        try:
            await asyncio.wait((task, left), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                return
            await task
        except ConnectionResetError:  # the client disconnected during a write
            return
        except (UpstreamFailed, ValueError) as failed:  # ValueError: an address or header that cannot be sent
            # No fault caused it, so this is a harness error.
            why = f"MCP server {self._server} cannot be reached: {failed}"
            self._context.sink.add_error(why, "mcp-config-invalid")
            if self._exchange.is_answered:
                self._exchange.break_connection()
            else:
                line = rpc.write_error(None, rpc.INTERNAL_ERROR, why)
                await self._exchange.respond(502, (("content-type", _JSON),), line)
        finally:
            left.cancel()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            if self._incoming is not None:
                self._incoming.abort()

    async def _answer(self, request: RpcRequest) -> None:
        try:
            outcome = await self._session.answer(request, self._ask_server)
        except StreamEnded:
            await self._exchange.finish() if self._exchange.is_answered else self._exchange.break_connection()
            return
        try:
            await self._deliver(outcome, request)
        finally:  # however the client's departure is noticed
            if outcome.kind in _DELIVERED_KINDS and not self._is_answered:
                self._session.mark_undelivered(outcome)

    async def _ask_server(self, request: RpcRequest) -> RpcAnswer:
        incoming = await self._send(request.raw)
        if incoming.status == 200 and (incoming.get("content-type") or "").startswith(_STREAM):
            self._events = _read_events(incoming)
            async for event in self._events:  # events before the answer go to the client as they arrive
                message = rpc.read_message(event.data) if event.data else None
                if message is not None and message.is_answer and message.id == request.id:
                    self._event = event
                    return RpcAnswer(message, event.data or b"")
                await self._send_event(event.raw)
            raise StreamEnded
        raw = await incoming.read(BODY_LIMIT)
        message = rpc.read_message(raw)
        if message is None or not message.is_answer:
            error = rpc.encode({"code": rpc.INTERNAL_ERROR, "message": f"HTTP {incoming.status}"})
            message = rpc.RpcMessage(error=Raw(error))
        return RpcAnswer(message, raw)

    async def _send(self, body: bytes | None) -> UpstreamReply:
        """Forward the request, with the headers that the configuration sets for the server."""
        own = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in self._target.headers.items()]
        replaced = _SET_BY_HOLDFAST | {name.lower() for name, _ in own}
        passed = [field for field in drop_hop_by_hop(self._exchange.head.headers) if field[0].lower() not in replaced]
        headers = [*passed, *own, (b"accept-encoding", b"identity")]
        self._incoming = incoming = await self._upstreams.send(
            self._exchange.head.method, self._target.url, headers, body, read_s=_SILENCE_S, once=True
        )
        self._context.sink.mark_answered(f"mcp:{self._server}")
        return incoming

    async def _send_event(self, event: bytes) -> None:
        """Send an event; the first one starts the stream."""
        exchange = self._exchange
        if not exchange.is_answered:
            await exchange.start(200, (*self._list_headers(), (b"content-type", _STREAM.encode())))
        await exchange.write(event)

    def _list_headers(self) -> RawFields:
        """Return the server's own headers, without those about its body."""
        if self._incoming is None:
            return ()
        return tuple([one for one in drop_hop_by_hop(self._incoming.headers) if one[0].lower() not in _FRAMING])

    async def _deliver(self, outcome: ClientOutcome, request: RpcRequest | None = None) -> None:
        exchange = self._exchange
        match outcome.kind:
            case "message" | "garbage":
                await self._send_message(outcome)
            case "expired":
                if request is not None and not request.is_stateless:
                    self._forget_session()
                await self._respond(404, ((b"content-type", _JSON.encode()),), outcome)
            case "silence":
                await exchange.connection.wait_closed()
            case "lost":
                exchange.break_connection()
            case "crash":
                self._forget_session()
                exchange.break_connection(reset=True)

    async def _send_message(self, outcome: ClientOutcome) -> None:
        """Send a message in the form that the server chose; two messages need a stream."""
        exchange, event = self._exchange, self._event
        if outcome.first:
            await self._send_event(sse.format_message(outcome.first))
        if event is not None or exchange.is_answered:
            if event is None or outcome.changed:
                await self._send_event(sse.format_message(outcome.line, b"" if event is None else event.id))
            else:
                await self._send_event(event.raw)
            self._is_answered = not exchange.connection.is_gone
            if self._events is not None:
                async for more in self._events:
                    await self._send_event(more.raw)
            await exchange.finish()
        elif outcome.changed or self._incoming is None:
            await self._respond(200, (*self._list_headers(), (b"content-type", _JSON.encode())), outcome)
        else:
            await self._respond(self._incoming.status, _drop_length(drop_hop_by_hop(self._incoming.headers)), outcome)

    async def _respond(self, status: int, headers: RawFields, outcome: ClientOutcome) -> None:
        await self._exchange.respond(status, headers, outcome.line)
        self._is_answered = not self._exchange.connection.is_gone

    async def _forward_unchanged(self, body: bytes | None) -> None:
        """Pass request and reply unchanged, as they arrive."""
        incoming = await self._send(body)
        length = incoming.get("content-length")
        headers = _drop_length(drop_hop_by_hop(incoming.headers))
        await self._exchange.start(incoming.status, headers, int(length) if length and length.isdigit() else None)
        async for data in incoming.stream_body():
            await self._exchange.write(data)
        await self._exchange.finish()

    def _forget_session(self) -> None:
        if self._session_id is not None and len(self._state.lost_sessions) < NAMES_KEPT:
            self._state.lost_sessions.add(self._session_id)


async def _read_events(incoming: UpstreamReply) -> AsyncIterator[sse.SseEvent]:
    """Yield the events of a reply as they arrive."""
    events = sse.EventSplitter()
    async for data in incoming.stream_body():
        for event in events.feed(data):
            if event.is_too_long:
                raise UpstreamFailed("protocol", f"an event of over {sse.LIMIT} bytes")
            yield event


def _drop_length(headers: RawFields) -> RawFields:
    return tuple([(name, value) for name, value in headers if name.lower() != b"content-length"])
