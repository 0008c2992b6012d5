"""A codec reads one provider's wire format into the neutral form and writes it back. One file per format.

A reply is written as a stream, or by editing a provider's own parts as little as possible."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from holdfast.model.codec import digest
from holdfast.model.completion import Completion, Cut, EmptyChunk, ErrorChunk, Pause, Text, ToolCall, Usage
from holdfast.planes.llm.codecs import error_replies, sse
from holdfast.planes.llm.codecs.error_replies import ErrorReply
from holdfast.planes.llm.codecs.loose import as_dict, dump_json, parse_json
from holdfast.planes.llm.codecs.request import Conversation, ModelRequest
from holdfast.planes.llm.codecs.sse import StreamFrame
from holdfast.planes.llm.codecs.streamed_reply import NOTHING, EventReader, ExtraParts, OriginalStream, StreamedReply
from holdfast.protocols.fault import Failed

CREATED = 1_767_225_600
"""The creation time in replies written by Holdfast: constant, so that equal replies are equal bytes."""

_PIECES = 4


class ReplyWriter(ABC):
    """How one format writes each part of a stream. `original` is the provider's stream that it replaces."""

    def __init__(self, codec: Codec, completion: Completion, request: ModelRequest, original: OriginalStream) -> None:
        self._codec = codec
        self._completion = completion
        self._request = request
        self._original = original
        self._copies = 1 if original.first else request.copies
        """Number of equal choices in a reply written by Holdfast."""
        self._calls = 0
        """Number of calls written so far."""
        self._base = codec.build_base(completion, request, codec.find_head(as_dict(original.first)))
        """The fields that the parts of the stream repeat."""

    def write_start(self) -> Iterable[bytes]:
        """Return the frames before the first part."""
        return ()

    @abstractmethod
    def write_text(self, text: str) -> Iterable[bytes]: ...

    @abstractmethod
    def write_call(self, call: ToolCall) -> Iterable[bytes]: ...

    @abstractmethod
    def write_empty(self) -> Iterable[bytes]: ...

    @abstractmethod
    def write_extra(self, data: Any) -> Iterable[bytes]:
        """Write a part that the neutral form does not support."""

    def write_error(self, error: ErrorChunk) -> Iterable[bytes]:
        yield self._format(error_replies.write_error(self._codec.provider, error.kind, error.message))

    @abstractmethod
    def write_end(self) -> Iterable[bytes]:
        """Return the finish reason, the usage and the terminator."""

    def _format(self, data: Any) -> bytes:
        """Return one event with this value."""
        return sse.format_event(data)

    def _take_call_fields(self) -> dict[str, Any]:
        """Return the fields of the next call that the neutral form does not have."""
        n, self._calls = self._calls, self._calls + 1
        return self._original.calls[n] if n < len(self._original.calls) else {}

    def _write_usage(self) -> dict[str, Any]:
        """Return the field with the usage, in the provider's own terms if it has not changed; empty if there is
        none."""
        used = self._completion.usage
        if not used:
            return {}
        fields, last = self._codec.write_usage(used), as_dict(self._original.last)
        own = used == self._original.before.usage
        return {name: (last.get(name) if own else None) or value for name, value in fields.items()}


def split_pieces(text: str) -> list[str]:
    """Split a text into a few pieces, as providers do with arguments."""
    size = max(1, -(-len(text) // _PIECES))
    return [text[at : at + size] for at in range(0, len(text), size)]


def derive_id(completion: Completion, request: ModelRequest) -> str:
    """Derive 24 hex digits for ids from the reply and its request."""
    return digest(dump_json([request, completion]), 12)


PartKind: TypeAlias = Literal["text", "call", "other"]


class PartFormat(Struct, frozen=True):
    """How a format distinguishes and creates parts, based on an earlier part if there is one."""

    kind: Callable[[Any], PartKind]
    text: Callable[[str, Any], Any]
    call: Callable[[ToolCall, Any], Any]


def edit_parts(parts: list[Any], before: Completion, after: Completion, part_format: PartFormat) -> list[Any]:
    """Return the parts with changed text or calls replaced; everything else stays as it was."""
    if before.text != after.text:
        olds = [part for part in parts if part_format.kind(part) == "text"]
        new_parts = [part_format.text(after.text, olds[0] if olds else None)] if after.text else []
        parts = _insert_parts(parts, "text", new_parts, part_format)
    if before.tool_calls != after.tool_calls:
        olds = [part for part in parts if part_format.kind(part) == "call"]
        calls = [part_format.call(call, old) for call, old in zip_longest(after.tool_calls, olds) if call is not None]
        parts = _insert_parts(parts, "call", calls, part_format)
    return parts


def _insert_parts(parts: list[Any], kind: PartKind, new: list[Any], part_format: PartFormat) -> list[Any]:
    """Insert new parts at the position of the first of their kind; otherwise text before the calls, and calls last."""
    kinds = [part_format.kind(part) for part in parts]
    following = "call" if kind == "text" else ""
    at = next((i for i, part_kind in enumerate(kinds) if part_kind in (kind, following)), len(parts))
    others = [part for part, part_kind in zip(parts[at:], kinds[at:], strict=True) if part_kind != kind]
    return [*parts[:at], *new, *others]


class Codec(ABC):
    """One wire format."""

    name: str
    """openai_chat, openai_responses, anthropic, gemini, ollama_chat, ollama_generate."""
    provider: str
    """openai, anthropic, google, ollama."""
    writer: type[ReplyWriter]
    """Writes a streamed reply."""
    model_field = "model"
    """The field of a reply that names the model."""
    stream_type = sse.TYPE
    """The content type of a streamed reply."""
    split_stream = staticmethod(sse.read_events)
    """Yields the JSON values in the bytes of a streamed reply."""

    @abstractmethod
    def read_request(self, path: str, body: Mapping[str, Any]) -> ModelRequest:
        """Read a request. `path` is the part after the base URL, with its query. Never raises for malformed bodies."""

    @abstractmethod
    def read_conversation(self, body: Mapping[str, Any]) -> Conversation:
        """Read the messages of a request."""

    @abstractmethod
    def write_result(self, node: dict[str, Any], text: str, failed: bool, /) -> None:
        """Write another text into the part of a request that holds a tool result; mark it as failed if the format
        can."""

    @abstractmethod
    def read_reply(self, data: Any) -> Completion:
        """Read a plain reply, decoded from JSON."""

    @abstractmethod
    def create_event_reader(self) -> EventReader:
        """Return the function that reads one event of one streamed reply."""

    @abstractmethod
    def write_usage(self, usage: Usage) -> dict[str, Any]:
        """Return the fields of a reply that state its usage."""

    @abstractmethod
    def build_empty(self, completion: Completion, request: ModelRequest) -> dict[str, Any]:
        """Return a reply written by Holdfast, without its content."""

    @abstractmethod
    def write_content(self, out: dict[str, Any], before: Completion, after: Completion, copies: int) -> None:
        """Write the content and the ending into a plain reply that was `before`; all unchanged parts stay.

        `copies` is the number of equal choices in a reply written by Holdfast.
        """

    def find_head(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return the part of a stream's first event that describes the complete reply."""
        return event

    def build_base(self, completion: Completion, request: ModelRequest, original: dict[str, Any]) -> dict[str, Any]:
        """Return the reply without its content: the provider's own if it has an id, completed otherwise."""
        out = dict(original) if "id" in original else {**self.build_empty(completion, request), **original}
        return out | {self.model_field: completion.model} if completion.model else out

    def read_stream(self, data: bytes) -> StreamedReply:
        """Read a streamed reply, as far as it has arrived. What is not a JSON object is dropped."""
        reply, read_event = StreamedReply(), self.create_event_reader()
        for fields in filter(None, map(as_dict, self.split_stream(data))):
            reply.first = reply.first or fields
            read_event(fields, reply)
        return reply

    def write_reply(self, completion: Completion, request: ModelRequest, original: dict[str, Any]) -> dict[str, Any]:
        """Return the plain reply as an object. `original` is the provider's reply that it replaces, or empty. Its ids,
        its fields that the neutral form does not support and all unchanged parts are kept."""
        out = self.build_base(completion, request, original)
        before = self.read_reply(original) if original else Completion()
        if completion.usage and completion.usage != before.usage:
            out |= self.write_usage(completion.usage)
        self.write_content(out, before, completion, 1 if original else request.copies)
        return out

    def replace_results(
        self, body: Mapping[str, Any], changed: Mapping[str, str], failed: Container[str]
    ) -> dict[str, Any]:
        """Return a copy of the request with other texts in its tool results, by key; `failed` ones are marked as
        failed.
        """
        copied: dict[str, Any] = parse_json(dump_json(body))
        for key, node in self.read_conversation(copied).result_nodes.items():
            if key in changed:
                self.write_result(node, changed[key], key in failed)
        return copied

    def write_body(self, completion: Completion, request: ModelRequest, original: Any = None) -> bytes:
        """Return the plain reply, or the error that it ends in; `original` is the provider's reply, if there is one."""
        for delta in completion.deltas:
            if isinstance(delta, ErrorChunk):
                return dump_json(error_replies.write_error(self.provider, delta.kind, delta.message))
        return dump_json(self.write_reply(completion, request, as_dict(original)))

    def write_frames(
        self, completion: Completion, request: ModelRequest, original: OriginalStream = NOTHING
    ) -> Iterator[StreamFrame]:
        """Yield the streamed reply, event by event, with the terminator unless a Cut comes first.

        Nothing is sent before a pause, an error or a cut that comes first.
        """
        opened, writer = False, self.writer(self, completion, request, original)
        # Parts that the neutral form does not have are sent again where they were: before the text or call that
        # followed them. In a reply without a message there is no place for them.
        extras = ExtraParts(NOTHING if completion.lacks else original, completion)
        for delta in completion.deltas:
            if isinstance(delta, (Pause, Cut)):
                yield delta
                if isinstance(delta, Cut):
                    return
            elif isinstance(delta, ErrorChunk):
                yield from writer.write_error(delta)
                return
            elif isinstance(delta, (Text, ToolCall, EmptyChunk)) and not completion.lacks:
                if not opened:
                    yield from writer.write_start()
                    opened = True
                for data in extras.pop_before(delta):
                    yield from writer.write_extra(data)
                if isinstance(delta, Text):
                    yield from writer.write_text(delta.text)
                else:
                    yield from writer.write_call(delta) if isinstance(delta, ToolCall) else writer.write_empty()
        if not opened:
            yield from writer.write_start()
        for data in extras.pop_rest():
            yield from writer.write_extra(data)
        yield from writer.write_end()

    def keep_deliverable(self, completion: Completion) -> Completion:
        """Return the parts of a reply that the format can carry to the client."""
        return completion

    def write_error_reply(self, failed: Failed) -> ErrorReply:
        """Return an error as this provider sends it; `failed.kind` selects it if the status alone is ambiguous."""
        return error_replies.write_error_reply(self.provider, failed)
