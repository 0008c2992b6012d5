"""Anthropic's Messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from holdfast.model.completion import Completion, FinishReason, ToolCall, Usage
from holdfast.planes.llm.codecs import anthropic_request, error_replies, sse
from holdfast.planes.llm.codecs.codec import (
    Codec,
    PartFormat,
    PartKind,
    ReplyWriter,
    derive_id,
    edit_parts,
    split_pieces,
)
from holdfast.planes.llm.codecs.loose import as_count, as_dict, as_list, as_raw_json, as_text, read_arguments
from holdfast.planes.llm.codecs.request import ModelRequest
from holdfast.planes.llm.codecs.streamed_reply import EventReader, OriginalStream, StreamedReply

_FINISH: dict[str, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
_STOP: dict[FinishReason | None, str | None] = {
    None: None,
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
_END = {"type": "content_block_stop"}
_KNOWN_OF_CALL = ("type", "id", "name", "input")
_INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def _find_kind(block: Any) -> PartKind:
    kind = as_dict(block).get("type")
    if kind == "text":
        return "text"
    return "call" if kind == "tool_use" else "other"


def _build_call_block(call: ToolCall, old: Any) -> dict[str, Any]:
    identity = {"id": call.id or f"toolu_{call.name}", "name": call.name}
    return {
        **as_dict(old),
        "type": "tool_use",
        **identity,
        "input": as_raw_json(call.arguments if call.arguments.strip() else "{}"),
    }


_BLOCKS = PartFormat(_find_kind, lambda text, old: {"type": "text", **as_dict(old), "text": text}, _build_call_block)


def _read_finish(message: dict[str, Any], reply: StreamedReply) -> None:
    if reason := as_text(message.get("stop_reason")):
        reply.set_finish(_FINISH.get(reason, "stop"))


def _read_usage(used: dict[str, Any]) -> Usage:
    """Read the usage; this format counts cached input separately from other input."""
    plain, written, cached = (as_count(used.get(key)) for key in _INPUTS)
    return Usage(plain + written + cached, as_count(used.get("output_tokens")), cached, written)


def _write_usage(usage: Usage) -> dict[str, Any]:
    written, cached = usage.cache_written, usage.cached_input
    inputs = dict(zip(_INPUTS, (max(0, usage.input_tokens - written - cached), written, cached), strict=True))
    cache = {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0}
    return {**inputs, "cache_creation": cache, "output_tokens": usage.output_tokens, "service_tier": "standard"}


class _Events:
    """Reads the events of a stream; usage is sent in parts, at the start and again at the end."""

    def __init__(self) -> None:
        self._used: dict[str, Any] = {}
        self._others: dict[int, list[Any]] = {}
        """Events of blocks that the neutral form does not support, by index."""
        self._after_text = False

    def read_event(self, event: dict[str, Any], reply: StreamedReply) -> None:
        match event.get("type"):
            case "message_start":
                message = as_dict(event.get("message"))
                reply.model = as_text(message.get("model"))
                self._add_usage(as_dict(message.get("usage")), reply)
            case "content_block_start":
                _read_block_start(as_count(event.get("index")), as_dict(event.get("content_block")), reply)
            case "content_block_delta":
                _read_delta(as_count(event.get("index")), as_dict(event.get("delta")), reply)
            case "message_delta":
                _read_finish(as_dict(event.get("delta")), reply)
                self._add_usage(as_dict(event.get("usage")), reply)
                reply.last = event
            case "ping":
                reply.add_empty()
            case "error":
                reply.set_error(error_replies.read_error(event))
        self._keep_other(event, reply)

    def _keep_other(self, event: dict[str, Any], reply: StreamedReply) -> None:
        """Keep the parts of an event that the neutral form does not support."""
        at, block, delta = (
            as_count(event.get("index")),
            as_dict(event.get("content_block")),
            as_dict(event.get("delta")),
        )
        # Two text blocks in a row are one text in the neutral form, so the border between them is kept as an extra
        # part. An unknown block is kept with all its events, and a delta of an unknown type as a part of its text.
        if event.get("type") == "content_block_start":
            kind = _find_kind(block)
            if kind == "other":
                self._others[at] = [event]
                reply.add_extra(as_text(block.get("type")), self._others[at])
            elif kind == "call":
                reply.add_call_fields(at, {name: value for name, value in block.items() if name not in _KNOWN_OF_CALL})
            elif self._after_text:
                reply.add_extra("", [_END], of_text=True)
            self._after_text = kind == "text"
        elif event.get("type") in ("content_block_delta", "content_block_stop"):
            if at in self._others:
                self._others[at].append(event)
            elif delta and delta.get("type") not in ("text_delta", "input_json_delta"):
                reply.add_extra(as_text(delta.get("type")), [event], of_text=True)

    def _add_usage(self, used: dict[str, Any], reply: StreamedReply) -> None:
        self._used |= {key: used[key] for key in (*_INPUTS, "output_tokens") if used.get(key) is not None}
        if self._used:
            reply.set_usage(_read_usage(self._used))


def _read_block_start(index: int, block: dict[str, Any], reply: StreamedReply) -> None:
    if _find_kind(block) == "call":
        reply.add_call(
            index, as_text(block.get("id")), as_text(block.get("name")), fallback=read_arguments(block.get("input"))
        )
    elif _find_kind(block) == "text":
        reply.add_text(as_text(block.get("text")))


def _read_delta(index: int, delta: dict[str, Any], reply: StreamedReply) -> None:
    if delta.get("type") == "text_delta":
        reply.add_text(as_text(delta.get("text")))
    elif delta.get("type") == "input_json_delta":
        reply.add_arguments(index, as_text(delta.get("partial_json")))


class _AnthropicWriter(ReplyWriter):
    def __init__(self, codec: Codec, completion: Completion, request: ModelRequest, original: OriginalStream) -> None:
        super().__init__(codec, completion, request, original)
        used, before = completion.usage, as_dict(self._base.get("usage")) if original.first else {}
        if used and (not before or replace(_read_usage(before), output_tokens=used.output_tokens) != used):
            self._base["usage"] = _write_usage(replace(used, output_tokens=1))
        self._index = -1
        self._in_text = False

    def write_start(self) -> Iterator[bytes]:
        yield self._format_event("message_start", message=self._base)

    def write_text(self, text: str) -> Iterator[bytes]:
        if not self._in_text:
            yield self._begin_block({"type": "text", "text": ""})
            self._in_text = True
        yield self._write_delta(type="text_delta", text=text)

    def write_call(self, call: ToolCall) -> Iterator[bytes]:
        yield from self._end_text()
        yield self._begin_block({**_build_call_block(call, self._take_call_fields()), "input": {}})
        for piece in split_pieces(call.arguments):
            yield self._write_delta(type="input_json_delta", partial_json=piece)
        yield self._format_event("content_block_stop", index=self._index)

    def write_empty(self) -> Iterator[bytes]:
        yield self._format_event("ping")

    def write_extra(self, data: Any) -> Iterator[bytes]:
        """Write events of a separate block, or of the open text block."""
        own = False
        for event in data:
            kind = event.get("type")
            if kind == "content_block_start":
                yield from self._end_text()
                yield self._begin_block(as_dict(event.get("content_block")))
                own = True
            elif kind == "content_block_delta" and (own or self._in_text):
                yield self._write_delta(**as_dict(event.get("delta")))
            elif kind == "content_block_stop" and not own:
                yield from self._end_text()
        if own:
            yield self._format_event("content_block_stop", index=self._index)

    def write_end(self) -> Iterator[bytes]:
        yield from self._end_text()
        used, last = self._completion.usage, as_dict(self._original.last)
        delta = {"stop_reason": _STOP[self._completion.finish], "stop_sequence": None}
        if self._completion.finish == self._original.before.finish:
            delta |= as_dict(last.get("delta"))
        usage = {**as_dict(last.get("usage")), "output_tokens": used.output_tokens if used else 0}
        yield self._format_event("message_delta", delta=delta, usage=usage)
        yield self._format_event("message_stop")

    def _begin_block(self, block: dict[str, Any]) -> bytes:
        self._index += 1
        return self._format_event("content_block_start", index=self._index, content_block=block)

    def _end_text(self) -> Iterator[bytes]:
        if self._in_text:
            self._in_text = False
            yield self._format_event("content_block_stop", index=self._index)

    def _write_delta(self, /, **delta: Any) -> bytes:
        return self._format_event("content_block_delta", index=self._index, delta=delta)

    def _format_event(self, name: str, /, **fields: Any) -> bytes:
        return self._format({"type": name, **fields})

    def _format(self, data: Any) -> bytes:
        return sse.format_event(data, data["type"])


class Anthropic(Codec):
    """Messages. Thinking and other blocks stay unchanged when a plain reply is changed."""

    name = "anthropic"
    provider = "anthropic"
    writer = _AnthropicWriter
    read_request = staticmethod(anthropic_request.read_request)
    read_conversation = staticmethod(anthropic_request.read_conversation)
    write_result = staticmethod(anthropic_request.write_result)

    def read_reply(self, data: Any) -> Completion:
        fields, reply = as_dict(data), StreamedReply()
        reply.model = as_text(fields.get("model"))
        if fields.get("type") == "error" or fields.get("error"):
            reply.set_error(error_replies.read_error(fields))
            return reply.build_completion()
        for at, block in enumerate(as_list(fields.get("content"))):
            _read_block_start(at, block, reply)
        _read_finish(fields, reply)
        if used := as_dict(fields.get("usage")):
            reply.set_usage(_read_usage(used))
        return reply.build_completion()

    def create_event_reader(self) -> EventReader:
        return _Events().read_event

    def find_head(self, event: dict[str, Any]) -> dict[str, Any]:
        return as_dict(event.get("message"))

    def write_usage(self, usage: Usage) -> dict[str, Any]:
        return {"usage": _write_usage(usage)}

    def build_empty(self, completion: Completion, request: ModelRequest) -> dict[str, Any]:
        fields = {"id": f"msg_{derive_id(completion, request)}", "type": "message", "role": "assistant"}
        ending = {"stop_reason": None, "stop_sequence": None, "usage": _write_usage(completion.usage or Usage(0, 0))}
        return {**fields, "model": request.model, "content": [], **ending}

    def write_content(self, out: dict[str, Any], before: Completion, after: Completion, copies: int) -> None:
        if after.finish != before.finish:
            out["stop_reason"] = _STOP[after.finish]
        parts = edit_parts(as_list(out.get("content")), before, after, _BLOCKS)
        out["content"] = {"": parts, "choices": [], "message": None}[after.lacks]


ANTHROPIC = Anthropic()
