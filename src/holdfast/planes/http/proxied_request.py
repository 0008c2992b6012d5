"""One call through the proxy, from its arrival to its event in the trace: what fails, and an ordinary request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from typing import Any

from msgspec import Struct

from holdfast.errors import HarnessError
from holdfast.http1.client import UpstreamFailed, UpstreamReply
from holdfast.http1.heads import RequestHead, drop_hop_by_hop
from holdfast.http1.relay import ConnectionUpgraded, forward_reply, forward_upgrade, is_upgrade_request
from holdfast.http1.server import Exchange
from holdfast.model.delivery import Delivery
from holdfast.model.trace import REFUSED
from holdfast.planes.describe import render_value
from holdfast.planes.egress_policy import NotPermitted
from holdfast.planes.http.outgoing_reply import TEXT, UpstreamAnswer, render_received, send_answer, send_failure
from holdfast.planes.http.proxy_rules import ProxyRules
from holdfast.planes.http.request import (
    RequestTarget,
    build_arguments,
    chain_chunks,
    decode_body,
    decompress,
    limit_encodings,
)
from holdfast.planes.http.request_trace import RequestTrace
from holdfast.protocols.fault import Call, Failed, Forward, Reply
from holdfast.protocols.trial import TrialContext

LIMIT = 10_000_000
"""Bytes of a body that faults receive."""

_PASSED = Reply(None)
"""The reply has already been sent to the client, byte by byte."""


class ProxyCall(Struct, eq=False):
    """A request or a CONNECT, from its arrival to its event in the trace."""

    _rules: ProxyRules
    _exchange: Exchange
    context: TrialContext
    _target: RequestTarget
    _started_trace: RequestTrace | None = None
    _was_killed: bool = False
    """Whether a fault killed the agent after this write, before the reply was sent."""

    async def run(self) -> None:
        """Answer it, whatever happens, and report it to the trace."""
        try:
            await self._process()
        except ConnectionUpgraded as passed:
            self._trace.status = passed.status
        except Failed as failed:
            await self._send_traced(self._send_failure(failed))
        except NotPermitted as refused:
            self._trace.report_refusal(self._rules, refused)
            await self._reject(403, REFUSED, str(refused))
        except UpstreamFailed as failed:
            self._rules.report_unreachable(self.context, self._target.origin, self._target.url, str(failed))
            await self._reject(504 if failed.kind == "timeout" else 502, "upstream", str(failed))
        except HarnessError as broken:
            self.context.sink.add_error(str(broken), broken.code)
            await self._reject(500, "harness", str(broken))
        except ConnectionError:
            self._record_client_gone()
        finally:
            if self._started_trace is not None:
                self._started_trace.report_end()

    async def _process(self) -> None:
        raise NotImplementedError

    @property
    def _trace(self) -> RequestTrace:
        """Its trace, created on first use: a connection whose requests are observed has none of its own."""
        if self._started_trace is None:
            self._started_trace = RequestTrace(self.context, self._target, self._exchange.head)
        return self._started_trace

    async def _send_failure(self, failed: Failed) -> None:
        await send_failure(self._exchange, failed, self._trace)

    async def _reject(self, status: int, error_type: str, why: str) -> None:
        trace, text = self._trace, f"Holdfast: {why}"
        trace.status, trace.error_type, trace.output = status, error_type, text
        if self._exchange.is_answered:
            self._exchange.break_connection()
        else:
            await self._send_traced(
                self._exchange.respond(status, (("content-type", TEXT),), f"{text}\n".encode(errors="replace"))
            )

    async def _send_traced(self, sending: Awaitable[None]) -> None:
        try:
            await sending
        except ConnectionError:
            self._record_client_gone()

    def _record_client_gone(self) -> None:
        # A write after which the agent was killed is done, and did not fail.
        self._trace.error_type = "" if self._was_killed else "client_gone"
        if not self._exchange.is_answered:
            self._trace.mark_undelivered()


class ProxiedRequest(ProxyCall, kw_only=True):
    """An ordinary request through the proxy."""

    among_others: bool
    """Whether other requests of the trial are in progress."""
    _body: bytes | AsyncIterator[bytes] | None = None
    _answered: UpstreamAnswer | None = None
    _is_affected: bool = False

    def __post_init__(self) -> None:
        self._started_trace = RequestTrace(self.context, self._target, self._exchange.head)

    @property
    def is_over(self) -> bool:
        """Whether the client received its complete reply, or left: its next request comes after this one."""
        return self._exchange.connection.is_gone or self._exchange.is_delivered

    def end_trial(self) -> None:
        """Report a request that is still in progress when the trial ends."""
        self._trace.report_unfinished()

    async def _process(self) -> None:
        self._is_affected = self.context.injector.can_affect("http", self._target.url)
        if self._is_affected and self.among_others:
            self.context.injector.mark_concurrent()
        # Three ways: a websocket can only be refused or delayed as a whole; a request that a fault may act on is read
        # first, because `match` may name its fields; any other passes as bytes in both directions.
        if is_upgrade_request(self._exchange.head):
            await self._apply_faults(b"", self._forward_websocket, self._forward_websocket)
        elif self._is_affected:
            await self._apply_faults(await self._read_request_body(), self._forward, self._forward_untouched)
        else:
            if self._has_body:
                self._body = self._trace.watch_body(self._exchange.stream_body())
            await self._forward_untouched()

    async def _wait(self, ms: float) -> None:
        """Wait for a fault; return immediately if the client has left."""
        if self._exchange.connection.has_left:
            self._trace.mark_undelivered(waits=True)
        await self._exchange.wait(ms)

    async def _apply_faults(self, data: bytes, forward: Forward, untouched: Forward) -> None:
        value = decode_body(self._exchange.head.get("content-type"), data) if data else ""
        call = Call("http", self._target.url, build_arguments(self._target, value), self._trace.n)
        # Neither a model nor a service of the trial's world is a tool, so a recording answers for neither.
        asks_model = self._rules.asks_model(self._target.method, self._target.path, value)
        names = () if asks_model or self._rules.connector.is_service(self._target.origin) else (self._target.url,)
        reply = await self.context.injector.inject(
            call,
            forward,
            self._wait,
            untouched=untouched,
            receives=lambda reply: render_received(reply, self._answered),
            names=names,
        )
        if reply is not _PASSED:
            await send_answer(self._exchange, reply, self._answered, self._trace, self._exchange.wait)

    @property
    def _has_body(self) -> bool:
        exchange = self._exchange
        return bool(exchange.body_framing.length) or exchange.head.get("transfer-encoding") is not None

    async def _read_request_body(self) -> bytes:
        """Return the part of the request's body that faults receive; the rest follows when it is forwarded."""
        if not self._has_body:
            return b""
        chunks = self._trace.watch_body(self._exchange.stream_body())
        data, whole = await read_up_to(chunks, LIMIT)
        self._body = data if whole else chain_chunks(data, chunks)
        return data

    # -- upstream -------------------------------------------------------------------------------
    async def _send_upstream(self) -> UpstreamReply:
        headers = [pair for pair in drop_hop_by_hop(self._exchange.head.headers) if pair[0].lower() != b"expect"]
        if self._is_affected:
            headers = [
                (name, limit_encodings(value) if name.lower() == b"accept-encoding" else value)
                for name, value in headers
            ]
        if self._rules.is_declared(self._target.url):  # if nothing answers there, the agent is not to blame
            self._trace.start_wait()
        incoming = await self._rules.connector.send_request(self._target, headers, self._body)
        if not self._exchange.connection.is_gone:  # otherwise upstream was silent until the client disconnected
            self._trace.since = None
            self.context.sink.mark_answered(str(self._target.origin))
        self._trace.status = incoming.status
        watcher = self.context.sink.watcher
        if watcher is not None and self._target.is_write and await watcher.settle_write():
            self._was_killed = True
            await self._exchange.connection.wait_until_left()
        return incoming

    async def _forward_untouched(self, call: Call | None = None) -> Reply:
        incoming = await self._send_upstream()
        self._trace.encoding = incoming.get("content-encoding")
        await forward_reply(self._exchange, incoming, tap=self._trace.tap)
        return _PASSED

    async def _forward_websocket(self, call: Call) -> Reply:
        wire = await self._rules.connector.open_stream(self._target.origin)
        await forward_upgrade(
            self._exchange, RequestHead(self._target.method, self._target.path, self._exchange.head.headers), wire
        )

    async def _forward(self, call: Call) -> Reply:
        incoming = await self._send_upstream()
        chunks = incoming.stream_body()
        data, whole = await read_up_to(chunks, LIMIT)
        plain = decompress(incoming.get("content-encoding"), data, LIMIT)
        # A body in an encoding that cannot be undone stays bytes: faults may still drop or cut it, but not change its
        # fields.
        value: Any = data if plain is None else decode_body(incoming.get("content-type"), plain)
        self._answered = UpstreamAnswer(incoming, value, data, None if whole else chunks, render_value(value))
        if not whole:
            self.context.sink.note(
                f"a reply of {self._target.url} was longer than {LIMIT} bytes: faults saw its beginning"
            )
        return Reply(value, Delivery(size=len(data)))


async def read_up_to(chunks: AsyncIterator[bytes], limit: int) -> tuple[bytes, bool]:
    """Return the first bytes, slightly more than the limit at most, and whether they are complete."""
    parts, size = [], 0
    async for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size > limit:
            return b"".join(parts), False
    return b"".join(parts), True
