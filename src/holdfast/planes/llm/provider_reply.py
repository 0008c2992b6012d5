"""A provider's answer: reads it into neutral form, and decides who is responsible if it is not a model's reply."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from holdfast.http1.heads import drop_hop_by_hop, read_body_framing
from holdfast.http1.server import Exchange
from holdfast.model.completion import Completion
from holdfast.model.shorten import shorten
from holdfast.planes.llm.call_record import CallRecord
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.loose import parse_json
from holdfast.planes.llm.reply_sender import find_error, finish_reply
from holdfast.planes.llm.sources.assigned import read_error_message
from holdfast.planes.llm.sources.source import PassedReply, Query, RawReply, is_provider_failure
from holdfast.protocols.trial import TrialContext

_PAGES = (b"<!doctype html", b"<html")
_MARKS = frozenset((
    "choices", "content", "candidates", "message", "messages", "output", "response", "error", "usage", "usageMetadata",
    "promptFeedback", "data", "embedding", "embeddings", "id", "object", "type", "model", "done",
))  # fmt: skip
"""Every reply of a model API has one of these fields, whatever its format."""
TRACED_LIMIT = 4_000_000
"""Bytes of a passing reply that are read for the trace."""


class ProviderReply(Struct, eq=False):
    """The reply to one request. A failure of the provider is not the agent's fault."""

    _context: TrialContext
    _query: Query
    _record: CallRecord
    is_expected: bool
    """Whether a model was called, and a model's reply must come back."""
    codec: Codec | None
    """The reader of the reply; None if it cannot be read."""
    is_side_request: bool = False
    """Whether no model is called: a library sends telemetry to its provider's host. Its failure decides nothing."""
    passed: PassedReply | None = None
    """A reply that passes to the agent as bytes."""
    body_read: bytes | bytearray = b""
    """The part of it that has passed; the trace keeps it, up to a limit."""
    original: Any = None
    """The provider's own reply, as a base for writing a changed one."""

    async def forward(self, answered: PassedReply, exchange: Exchange, *, requires_client: bool) -> None:
        """Forward a reply as it arrives, and read along; `requires_client`: fail if the agent has left."""
        self.passed, record = answered, self._record
        record.status = answered.wire.status
        try:
            await self._forward_body(answered.wire, exchange, requires_client)
        except ConnectionError:
            record.error_type = "client_gone"  # unless it already had everything it wanted
        finally:
            answered.wire.abort()
        self.settle()

    async def _forward_body(self, wire: RawReply, exchange: Exchange, requires_client: bool) -> None:
        record, framing = self._record, read_body_framing(wire.headers)
        self.body_read = body = bytearray()
        chunks = wire.stream_body()
        if wire.status >= 300:  # its client may leave after the status, and the body must still be reported
            body += await anext(chunks, b"")
        if requires_client:
            exchange.ensure_connected()
        await exchange.start(wire.status, drop_hop_by_hop(wire.headers), framing.length, reason=wire.reason)
        if body:
            await exchange.write(bytes(body))
        record.start_wait()
        async for data in chunks:
            record.since = None  # now the client may be the slow side
            body += data[: TRACED_LIMIT - len(body)]
            await exchange.write(data)
            record.start_wait()
        record.since = None
        await finish_reply(exchange)

    @property
    def is_cut(self) -> bool:
        """Whether more has passed than was read."""
        return len(self.body_read) >= TRACED_LIMIT

    def read_so_far(self) -> Completion | None:
        """Return the part of a passing reply that has arrived, in neutral form."""
        return None if self.passed is None else self.read_completion(self.passed.wire, bytes(self.body_read))

    def read_completion(self, wire: RawReply, body: bytes) -> Completion | None:
        """Return the reply in neutral form."""
        codec = self.codec
        if wire.status >= 300 or codec is None:
            return None
        kind = _read_content_type(wire)
        streamed = self._query.stream or self._query.codec is None  # a fetched reply states itself how it is sent
        if streamed and (kind != "application/json" or kind == codec.stream_type):
            reply = codec.read_stream(body)
            self.original = reply.build_original()
            return reply.build_completion()
        self.original = parse_json(body)
        return None if self.original is None else codec.read_reply(self.original)

    def describe_foreign(self, wire: RawReply, body: bytes) -> str:
        """Name the data that came instead of a model's reply, if a model was called; empty if it may be a reply."""
        kind = _read_content_type(wire)
        if not self.is_expected or (isinstance(self.original, dict) and kind == "application/json"):
            return ""  # in the second case it was read, and is an object
        if kind == "text/html" or body[:200].lstrip().lower().startswith(_PAGES):  # whatever its status
            return "text/html"
        # A reply that was cut short, or is longer than what is read, says nothing against the provider: its end is
        # unknown.
        if wire.status >= 300 or self._record.error_type == "client_gone" or len(body) >= TRACED_LIMIT:
            return ""
        if not body.strip():
            return "nothing"
        if self._query.stream and kind != "application/json":
            return "" if _has_event(body) else kind or "no type"
        data = parse_json(body)
        objects = data if isinstance(data, list) else [data]  # Gemini streams an array
        is_reply = objects and all(isinstance(one, dict) and not _MARKS.isdisjoint(one) for one in objects)
        return "" if is_reply else kind or "no type"

    def settle(self) -> None:
        """Read what passed, for the trace."""
        if self.passed is None:
            return
        record, body, completion = self._record, bytes(self.body_read), self.read_so_far()
        if self.passed.wire.status >= 300 or self.describe_foreign(self.passed.wire, body):
            self.report_failure(self.passed, body)
            return
        record.completion = completion
        if completion is not None:
            kind = self.report_end_error(completion, self.passed.origin)
            if kind or (record.error_type and completion.finish is not None):
                record.error_type = kind

    def report_end_error(self, completion: Completion, origin: str) -> str:
        """Report an error of the provider at the end of a reply that began normally."""
        if kind := find_error(completion):
            self.report_error(f"{origin} ended its reply with an error that was not injected: {kind}")
        return kind

    def report_failure(self, answered: PassedReply, body: bytes) -> None:
        """Report that this is not a model's reply."""
        status = answered.wire.status
        message = shorten(body.decode("utf-8", "replace").strip(), 200)
        foreign = self.describe_foreign(answered.wire, body)
        self._record.error_type = f"http_{status}" if status >= 300 else "upstream"
        if foreign:
            where = answered.url or answered.origin
            self.report_error(f"{where} answered {status} with {foreign}, which is not a model's reply: {message}")
        elif answered.is_scripted:
            self.report_error(f"{answered.origin}: {read_error_message(body)}")
        elif is_provider_failure(status, self._query, billed=answered.billed):
            self.report_error(f"{answered.origin} answered {status}, which was not injected: {message}")

    def report_error(self, why: str) -> None:
        """Report a failure that no fault caused to the trial."""
        if self.is_side_request:
            self._context.sink.note(why)
        else:
            self._context.sink.add_error(why, "model-unavailable")


def _read_content_type(wire: RawReply) -> str:
    return (wire.get("content-type") or "").partition(";")[0].strip().lower()


def _has_event(body: bytes) -> bool:
    """Return whether the first object in a stream can be read."""
    for line in body[:TRACED_LIMIT].splitlines():
        event = line.removeprefix(b"data:").strip(b" ,[")
        if event.startswith(b"{"):
            return parse_json(event) is not None
    return False
