"""Writes replies to the agent, in the agent's format: a completion, a failure, or a provider's reply."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from random import Random
from typing import Any

from holdfast.http1.heads import JSON_TYPE, RawFields
from holdfast.http1.server import Exchange
from holdfast.model.codec import digest
from holdfast.model.completion import Completion, Cut, ErrorChunk, Pause
from holdfast.planes.call_report import CallReport
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.error_replies import ErrorReply, Headers
from holdfast.planes.llm.codecs.loose import dump_json
from holdfast.planes.llm.codecs.sse import StreamFrame
from holdfast.planes.llm.codecs.streamed_reply import NOTHING, OriginalStream
from holdfast.planes.llm.sources.source import Query
from holdfast.protocols.fault import Dropped, Failed, Sleep, TimedOut

_COMMENT = b": keep-alive\n\n"
_PING = b'event: ping\ndata: {"type":"ping"}\n\n'
_EMPTY_FRAME = re.compile(
    rb"event: (ping|response\.in_progress)\n"
    rb'|data: .*"delta":\{"role":"assistant","content":(""|null),"refusal":null\}'
    rb'|data: .*"parts":\[\{"text":""\}\]'
)
"""An empty frame, in the formats that use server-sent events."""
_TEXT_FIELD = re.compile(rb'"(content|response)":"(?:[^"\\]|\\.)+"')
"""The content of an Ollama line."""
_CONTINUATION = re.compile(rb"[\x80-\xbf]")
"""A continuation byte inside a UTF-8 character."""


async def send_completion(
    exchange: Exchange,
    record: CallReport,
    query: Query,
    n: int,
    completion: Completion,
    original: Any,
    sleep: Sleep | None,
) -> None:
    """Send a reply in the agent's format. `record` already says what the agent receives if nothing cuts it off; `n` is
    the number of the call in its trial.

    `original` is the provider's reply that it replaces: an OriginalStream, or decoded JSON.
    """
    codec, request = query.codec, query.request
    assert codec is not None
    assert request is not None
    if not request.stream:
        body = codec.write_body(completion, request, original)
        await _send_unstreamed(exchange, record, codec, completion, body, sleep)
        return
    frames = codec.write_frames(completion, request, original if isinstance(original, OriginalStream) else NOTHING)
    if completion.odd:
        frames = split_oddly(frames, Random(digest(f"{query.trial}:{n}".encode())))
    await exchange.start(200, (("content-type", codec.stream_type),))
    for frame in frames:
        if isinstance(frame, Pause):
            await _wait(frame.ms, sleep)
        elif isinstance(frame, Cut):
            exchange.break_connection()
            record.error_type = "connection_lost"
            return
        else:
            await exchange.write(frame)
    await finish_reply(exchange)


async def _send_unstreamed(
    exchange: Exchange, record: CallReport, codec: Codec, completion: Completion, body: bytes, sleep: Sleep | None
) -> None:
    """Send a plain reply: its pauses come first, an error becomes its status, and a cut leaves half of it."""
    await _wait(sum(delta.ms for delta in completion.deltas if isinstance(delta, Pause)), sleep)
    for delta in completion.deltas:
        if isinstance(delta, ErrorChunk):
            await send_failure(exchange, record, codec, Failed(delta.message, kind=delta.kind))
            return
    if not any(isinstance(delta, Cut) for delta in completion.deltas):
        await exchange.respond(200, JSON_TYPE, body)
        return
    await exchange.start(200, JSON_TYPE, length=len(body))
    await exchange.write(body[: len(body) // 2])
    exchange.break_connection()
    record.error_type = "connection_lost"


async def send_failure(exchange: Exchange, record: CallReport, codec: Codec | None, failed: Failed) -> None:
    """Send a failure that a fault caused."""
    is_timeout = isinstance(failed, TimedOut)
    if is_timeout or isinstance(failed, Dropped) or codec is None:
        exchange.break_connection(reset=not is_timeout)
        record.status, record.error_type = None, "timeout" if is_timeout else "connection_lost"
        return
    refusal = codec.write_error_reply(failed)
    await send_reply(exchange, record, refusal.status, refusal.headers, refusal.body)


async def send_error(exchange: Exchange, record: CallReport, codec: Codec | None, why: str, status: int) -> None:
    """Send an error that no fault caused: a harness error, or a provider that gave no answer."""
    record.status, record.error_type = status, "upstream"
    if exchange.is_answered:
        exchange.break_connection()
        return
    if codec is not None:
        refusal = codec.write_error_reply(Failed(why, status=status))
    else:
        refusal = ErrorReply(status, JSON_TYPE, dump_json({"error": {"message": why, "type": "holdfast"}}))
    with suppress(ConnectionError):
        await exchange.respond(refusal.status, refusal.headers, refusal.body)


async def send_reply(
    exchange: Exchange, record: CallReport, status: int, headers: Headers | RawFields, body: bytes
) -> None:
    """Send a complete reply unchanged, and record how the agent received it."""
    error_type = f"http_{status}" if status >= 300 else ""
    try:
        await exchange.respond(status, headers, body)
    except ConnectionError:
        error_type = "client_gone"
    record.status, record.error_type = status, error_type


def find_error(completion: Completion) -> str:
    """Return the kind of error that a reply ends in; empty if it ends normally."""
    for delta in completion.deltas:
        if isinstance(delta, ErrorChunk):
            return delta.kind
    return ""


async def finish_reply(exchange: Exchange) -> None:
    """End a reply. Some clients leave after the last event, before the end of the body."""
    try:
        await exchange.finish()
    except ConnectionError:
        return


async def _wait(ms: float, sleep: Sleep | None) -> None:
    if ms > 0:
        await (sleep(ms) if sleep is not None else asyncio.sleep(ms / 1000))


def split_oddly(frames: Iterable[StreamFrame], rng: Random) -> Iterator[StreamFrame]:
    """Split frames inside characters and fields, join some to the next, repeat some, and add comments between
    events.

    Content is never repeated: only empty frames are, which servers send to keep a connection alive. Comments are added
    only where the format allows them: between events that end with an empty LF line. (Google's events end with CRLF,
    and its library reads a comment as data.)
    """
    pending = b""
    repeats = _Repeats(rng)
    for frame in frames:
        if not isinstance(frame, bytes):
            yield from _cut_randomly(pending, rng)
            pending = b""
            yield frame
            continue
        pending += frame + repeats.repeat_after(frame)
        if frame.endswith(b"}\n\n"):
            pending += _COMMENT * rng.choice((0, 1, 1, 2))
        if rng.random() < 0.3:  # two frames in one packet, split elsewhere
            continue
        # The last piece is sometimes held back and joined to the next frame, so that packets end in the middle of an
        # event: that is what a network does, and what a client that reads packet by packet gets wrong.
        pieces = list(_cut_randomly(pending, rng))
        pending = pieces.pop() if rng.random() < 0.5 else b""
        yield from pieces
    yield from _cut_randomly(pending, rng)


class _Repeats:
    """The frames of one stream that are repeated: the first empty one, and others at random."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._done = False

    def repeat_after(self, frame: bytes) -> bytes:
        """Return the bytes to repeat after a frame."""
        empty, copies = self._make_empty_frame(frame)
        if not empty or (self._done and self._rng.random() < 0.5):
            return b""
        self._done = True
        return empty * copies

    def _make_empty_frame(self, frame: bytes) -> tuple[bytes, int]:
        """Return an empty frame that may follow this one, and how often it must be sent to arrive twice."""
        # Only frames without content may arrive twice: OpenAI and Google send such frames themselves, Anthropic has
        # pings, and an Ollama line becomes empty when its text is removed.
        if _EMPTY_FRAME.match(frame):
            return frame, 1
        if self._done:
            return b"", 0
        if frame.startswith(b"event: message_start\n"):
            return _PING, 2
        if frame.endswith(b'"done":false}\n') and b'"tool_calls"' not in frame and _TEXT_FIELD.search(frame):
            return _TEXT_FIELD.sub(rb'"\1":""', frame), 2
        return b"", 0


def _cut_randomly(data: bytes, rng: Random) -> Iterator[bytes]:
    """Yield the bytes in pieces: split inside a multi-byte character if there is one, otherwise anywhere."""
    if not data:
        return
    # Splitting inside a character is the case that breaks clients which decode each packet by itself, so it is
    # preferred where there is such a character.
    inside = [match.start() for match in islice(_CONTINUATION.finditer(data, 1), 1_000)]
    places = set(rng.sample(inside, min(2, len(inside))))
    places |= {rng.randrange(1, len(data)) for _ in range(2) if len(data) > 1}
    start = 0
    for place in sorted(places):
        yield data[start:place]
        start = place
    yield data[start:]
