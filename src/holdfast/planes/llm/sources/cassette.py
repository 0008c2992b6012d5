"""A recording of model calls: how replies are stored, and how `--replay` answers from them. JSON, one reply per
line."""

from __future__ import annotations

import base64
from codecs import getincrementaldecoder
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import UserError
from holdfast.model.codec import (
    RECORDING,
    FormatNumber,
    digest,
    encode_canonical,
    format_too_new,
    make_encodable,
    make_storable,
)
from holdfast.model.completion import Completion, ToolCall
from holdfast.model.shorten import shorten
from holdfast.planes.llm.codecs.error_replies import Headers
from holdfast.planes.llm.codecs.loose import parse_json
from holdfast.planes.llm.sources.source import (
    ModelSource,
    Occurrences,
    PassedReply,
    Query,
    RawReply,
    SourceReply,
    StoredReply,
    UpstreamDown,
)


class RecordingUnusable(UserError):
    """A recording cannot be read or written."""

    default_code = "recording-unusable"


class NotRecorded(UpstreamDown):
    """The recording has no reply to this request."""

    default_code = "recording-no-reply"


class RecordedReply(Struct, frozen=True):
    """One line of a recording."""

    key: str
    """A digest of the request's provider, path and body, without what changes from run to run."""
    provider: str
    model: str
    prompt: str
    trial: str
    n: int
    """The number of the request with this key in its trial, from 1."""
    status: int
    headers: Headers
    chunks: tuple[str, ...]
    """Text; base64 if `binary`."""
    binary: bool = False
    ms: float = 0.0
    format: int = RECORDING


class Cassette:
    """Answers from a recording with the reply to the same request: of the same trial, otherwise of any trial.

    Only an index is held in memory; a reply is read when it is needed.
    """

    def __init__(self, path: Path, mask: Mask) -> None:
        self._path = path
        self._mask = mask
        self._origin = f"recording {path.name}"
        self._requests = Occurrences()
        self.forget = self._requests.forget
        self._places: dict[tuple[str, str, int], int] = {}
        self._by_key: dict[str, dict[int, int]] = {}
        self._prompts: dict[str, None] = {}
        self._read_index()

    async def answer(self, query: Query) -> PassedReply:
        """Return the recorded reply, chunk by chunk; raise NotRecorded if there is none."""
        key = compute_key(query, self._mask)
        n = self._requests.count_next(query.trial, key)
        of_key = self._by_key.get(key)
        if of_key is None:
            raise NotRecorded(self._describe_unknown(query))
        # Most specific first: the same trial's nth request, any trial's nth, and for a trial that asks more often than
        # any recorded one, the last reply there is.
        place = self._places.get((key, query.trial, n), of_key.get(n))
        recorded = self._read_reply(of_key[max(of_key)] if place is None else place)
        return PassedReply(
            StoredReply(recorded.status, recorded.headers, decode_chunks(recorded.chunks, recorded.binary)),
            self._origin,
            billed=False,
        )

    def _read_index(self) -> None:
        try:
            with self._path.open("rb") as file:
                place = 0
                for number, line in enumerate(file, 1):
                    if line.endswith(b"\n") and line.strip():  # a truncated last line is not a reply
                        self._index(line, number, place)
                    place += len(line)
        except OSError as broken:
            raise RecordingUnusable(f"{self._path}: the recording cannot be read: {broken.strerror}") from broken
        if not self._by_key:
            raise RecordingUnusable(f"{self._path}: the recording is empty", hint="make one with --record FILE")

    def _index(self, line: bytes, number: int, place: int) -> None:
        try:
            if (format := _numbers.decode(line).format) != RECORDING:
                problem = format_too_new(f"{self._path}:{number}", format, RECORDING)
                raise RecordingUnusable(problem, hint="replay it with the version that recorded it, or record it again")
            recorded = _decoder.decode(line)
            decode_chunks(recorded.chunks, recorded.binary)
        except (msgspec.MsgspecError, ValueError, RecursionError) as broken:
            raise RecordingUnusable(f"{self._path}:{number}: not a line of a recording: {broken}") from broken
        request_key, of_key = (recorded.key, recorded.trial, recorded.n), self._by_key.setdefault(recorded.key, {})
        # The first recording of the nth such request answers trials that were not recorded themselves; if the same
        # trial is recorded again, its newer reply replaces its own older one there, too.
        if of_key.get(recorded.n) in (None, self._places.get(request_key)):
            of_key[recorded.n] = place
        self._places[request_key] = place  # recorded again: the newer reply counts
        self._prompts[recorded.prompt] = None

    def _read_reply(self, place: int) -> RecordedReply:
        with self._path.open("rb") as file:
            file.seek(place)
            return _decoder.decode(file.readline())

    def _describe_unknown(self, query: Query) -> str:
        from rapidfuzz import process

        prompt = self._mask(describe_prompt(query))
        nearest = process.extractOne(prompt, list(self._prompts))
        known = f"; the nearest recorded prompt is {nearest[0]!r}" if nearest and nearest[0] else ""
        what = f"{query.model or query.path.partition('?')[0]} with the prompt {prompt!r}"
        return f"{self._origin} has no reply to this request to {what}{known}"


class PrefixSource(Struct, frozen=True):
    """Answers the first requests of a trial from a recording. From the first that the recording does not have on, the
    trial has left what was recorded, so the model itself answers everything."""

    cassette: Cassette
    live: ModelSource
    missing: dict[str, str]
    """By trial that has left the recording: the request that it does not have."""

    async def answer(self, query: Query) -> SourceReply:
        if query.trial not in self.missing:
            try:
                return await self.cassette.answer(query)
            except NotRecorded as unknown:
                self.missing[query.trial] = str(unknown)
        try:
            return await self.live.answer(query)
        except UpstreamDown as down:  # without the recording's part, nobody would know why the model was called
            raise NotRecorded(f"{self.missing[query.trial]}, so the model was called: {down}", kind=down.kind) from down


_decoder = msgspec.json.Decoder(RecordedReply)
_numbers = msgspec.json.Decoder(FormatNumber)


def describe_prompt(query: Query) -> str:
    """Return a short text by which a person recognises the request."""
    return make_encodable(shorten(query.request.prompt)) if query.request is not None else ""


Mask: TypeAlias = Callable[[str], str]

_VOLATILE = frozenset((
    "user", "metadata", "safety_identifier", "prompt_cache_key", "service_tier", "store", "stream_options",
    "keep_alive",
))  # fmt: skip
"""Parts of a request that name the caller or tune the service: the answer does not depend on them."""
_IDS = frozenset({"id", "tool_call_id", "tool_use_id", "call_id"})
"""Ids that some client libraries generate in every run; only their order counts."""
_DATA = frozenset({"input", "args", "arguments", "response", "parameters", "input_schema"})
"""Maps that belong to the tools: an `id` in them is an ordinary value."""


def compute_key(query: Query, mask: Mask) -> str:
    """Return the key of a request: equal in every run that makes the same request."""
    path = query.path.partition("?")[0]
    path = path[3:] if path.startswith("/v1/") else path
    return digest(f"{query.provider} {query.method} {path}\n".encode() + _normalize_body(query, mask), 16)


def _normalize_body(query: Query, mask: Mask) -> bytes:
    if not isinstance(query.data, dict):
        return query.body
    try:
        # Ids that a client library invents differ in every run, but where they recur does not. They are numbered in the
        # order in which they appear, so two runs of one conversation have one key.
        steady = _normalize_ids({k: v for k, v in query.data.items() if k not in _VOLATILE}, {})
        return mask(encode_canonical(make_storable(steady)).decode()).encode()
    except RecursionError:
        return query.body


def _normalize_ids(value: Any, ids: dict[str, str], name: str = "") -> Any:
    """Return the value, which is in the field of that name, with its ids numbered."""
    if name in _IDS and isinstance(value, str):
        return ids.setdefault(value, f"#{len(ids)}")
    if isinstance(value, list):
        return [_normalize_ids(item, ids) for item in value]
    if not isinstance(value, dict) or name in _DATA:
        return value
    return {key: _normalize_ids(inner, ids, key) for key, inner in value.items()}


def mask_chunks(query: Query, wire: RawReply, chunks: list[bytes], mask: Mask) -> tuple[tuple[str, ...], bool] | None:
    """Return the chunks as they may be stored, and whether they are base64; None if they contain a secret that cannot
    be masked."""
    try:
        text = b"".join(chunks).decode()
    except UnicodeDecodeError:
        blurred = b"".join(chunks).decode("latin-1")
        if mask(blurred) != blurred:
            return None
        return tuple([base64.b64encode(chunk).decode() for chunk in chunks]), True
    # A secret may be split over several chunks, where no search would find it. So the reply is masked in neutral form
    # and written again; only a reply that holds no secret is stored as it arrived.
    masked = _mask_completion(_read_completion(query, wire, text), mask)
    if masked is not None:
        return tuple([c.decode() for c in write_reply(query, masked).parts]), False
    if mask(text) != text:
        return (mask(text),), False
    # A character that is split over two chunks belongs to the second.
    decoder = getincrementaldecoder("utf-8")()
    return tuple([make_encodable(piece) for chunk in chunks if (piece := decoder.decode(chunk))]), False


def write_reply(query: Query, completion: Completion) -> StoredReply:
    """Return a reply in the agent's format, as bytes."""
    assert query.codec is not None
    assert query.request is not None
    if not query.request.stream:
        body = query.codec.write_body(completion, query.request)
        return StoredReply(200, (("content-type", "application/json"),), (body,))
    frames = tuple([frame for frame in query.codec.write_frames(completion, query.request) if isinstance(frame, bytes)])
    return StoredReply(200, (("content-type", query.codec.stream_type),), frames)


def decode_chunks(chunks: tuple[str, ...], binary: bool) -> tuple[bytes, ...]:
    """Return the chunks as they were sent; raise ValueError for invalid base64."""
    return tuple([base64.b64decode(chunk, validate=True) if binary else chunk.encode() for chunk in chunks])


def _read_completion(query: Query, wire: RawReply, text: str) -> Completion | None:
    """Return the content of the reply in neutral form: a secret may be split over several events of a stream."""
    if query.codec is None or wire.status != 200:
        return None
    if query.stream:
        return query.codec.read_stream(text.encode()).build_completion()
    reply = parse_json(text)
    return None if reply is None else query.codec.read_reply(reply)


def _mask_completion(completion: Completion | None, mask: Mask) -> Completion | None:
    """Return the reply with its secrets masked; None if it has none."""
    if completion is None:
        return None
    deltas = [
        replace(delta, arguments=mask(delta.arguments)) if isinstance(delta, ToolCall) else delta
        for delta in completion.deltas
    ]
    masked = replace(completion, deltas=tuple(deltas))
    if mask(completion.text) != completion.text:
        masked = masked.with_text(mask(completion.text))
    return None if masked == completion else masked
