"""Anthropic's Messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from holdfast.model.completion import Completion, Delta, ErrorChunk, Finish, FinishReason, Text, ToolCall, Usage
from holdfast.planes.llm.codecs import anthropic_request, refusals, sse
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.loose import as_json, count, items, json_text, obj, word
from holdfast.planes.llm.codecs.reply_writer import PartFormat, PartKind, ReplyWriter, edited, mark, pieces
from holdfast.planes.llm.codecs.request import ModelRequest
from holdfast.planes.llm.codecs.streamed_reply import FormatReader, OriginalStream, StreamedReply

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


class Anthropic(Codec):
    """Messages. Thinking and other blocks stay unchanged when a plain reply is changed."""

    name = "anthropic"
    provider = "anthropic"

    read_request = staticmethod(anthropic_request.read_request)
    replace_results = staticmethod(anthropic_request.replace_results)

    def reply(self, data: Any) -> Completion:
        fields = obj(data)
        model = word(fields.get("model"))
        if fields.get("type") == "error" or fields.get("error"):
            return Completion((refusals.trouble(fields),), model)
        deltas: list[Delta] = []
        for block in items(fields.get("content")):
            kind = _kind(block)
            if kind == "call":
                deltas.append(ToolCall(word(block.get("id")), word(block.get("name")), _arguments(block)))
            elif kind == "text" and (text := word(block.get("text"))):
                deltas.append(Text(text))
        return Completion((*deltas, *_finish(fields), *_usage(obj(fields.get("usage")))), model)

    def reader(self, *, keep: bool = False) -> FormatReader:
        return FormatReader(sse.DataEvents(), _Events().take, keep=keep)

    def written(self, completion: Completion, request: ModelRequest, like: dict[str, Any]) -> dict[str, Any]:
        was = self.reply(like)
        out = dict(like) if "id" in like else {**_fresh(completion, request), **like}
        if completion.model and completion.model != was.model:
            out["model"] = completion.model
        if completion.usage and completion.usage != was.usage:
            out["usage"] = _usage_of(completion.usage)
        if completion.finish != was.finish:
            out["stop_reason"] = _STOP[completion.finish]
        out["content"] = edited(items(like.get("content")), was, completion, _BLOCKS)
        if completion.lacks:
            out["content"] = [] if completion.lacks == "choices" else None
        return out

    def writer(self, completion: Completion, request: ModelRequest, like: OriginalStream) -> ReplyWriter:
        return _AnthropicWriter(completion, request, like)


def _kind(block: Any) -> PartKind:
    kind = obj(block).get("type")
    if kind == "text":
        return "text"
    return "call" if kind == "tool_use" else "other"


def _arguments(block: dict[str, Any]) -> str:
    arguments = block.get("input")
    return "{}" if arguments is None else json_text(arguments)


def _block(call: ToolCall, old: Any) -> dict[str, Any]:
    made = {"id": call.id or f"toolu_{call.name}", "name": call.name}
    return {
        **obj(old),
        "type": "tool_use",
        **made,
        "input": as_json(call.arguments if call.arguments.strip() else "{}"),
    }


_BLOCKS = PartFormat(_kind, lambda text, old: {"type": "text", **obj(old), "text": text}, _block)


def _finish(message: dict[str, Any]) -> tuple[Finish, ...]:
    reason = word(message.get("stop_reason"))
    return (Finish(_FINISH.get(reason, "stop")),) if reason else ()


def _usage(used: dict[str, Any]) -> tuple[Usage, ...]:
    """The format counts cached input separately from other input."""
    plain, written, cached = (count(used.get(key)) for key in _INPUTS)
    return (Usage(plain + written + cached, count(used.get("output_tokens")), cached, written),) if used else ()


def _usage_of(usage: Usage) -> dict[str, Any]:
    written, cached = usage.cache_written, usage.cached_input
    inputs = dict(zip(_INPUTS, (max(0, usage.input_tokens - written - cached), written, cached), strict=True))
    cache = {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0}
    return {**inputs, "cache_creation": cache, "output_tokens": usage.output_tokens, "service_tier": "standard"}


def _fresh(completion: Completion, request: ModelRequest) -> dict[str, Any]:
    """A reply written by Holdfast, without its content."""
    return {
        "id": f"msg_{mark(completion, request)}",
        "type": "message",
        "role": "assistant",
        "model": completion.model or request.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage_of(completion.usage or Usage(0, 0)),
    }


class _Events:
    """Reads the events of a stream; usage is sent in parts, at the start and again at the end."""

    def __init__(self) -> None:
        self._used: dict[str, Any] = {}
        self._others: dict[int, list[Any]] = {}
        """Events of blocks that the neutral form does not support, by index."""
        self._after_text = False

    def take(self, event: dict[str, Any], got: StreamedReply) -> None:
        match event.get("type"):
            case "message_start":
                message = obj(event.get("message"))
                got.model = word(message.get("model"))
                self._use(obj(message.get("usage")), got)
            case "content_block_start":
                _start(count(event.get("index")), obj(event.get("content_block")), got)
            case "content_block_delta":
                _delta(count(event.get("index")), obj(event.get("delta")), got)
            case "message_delta":
                for finish in _finish(obj(event.get("delta"))):
                    got.finish(finish.reason)
                self._use(obj(event.get("usage")), got)
                got.last = event
            case "ping":
                got.hollow()
            case "error":
                got.trouble(refusals.trouble(event))
        if got.keep:
            self._keep(event, got)

    def _keep(self, event: dict[str, Any], got: StreamedReply) -> None:
        """Keeps the parts of an event that the neutral form does not support."""
        at, block, delta = count(event.get("index")), obj(event.get("content_block")), obj(event.get("delta"))
        if event.get("type") == "content_block_start":
            kind = _kind(block)
            if kind == "other":
                self._others[at] = [event]
                got.aside(word(block.get("type")), self._others[at])
            elif kind == "call":
                got.beside(at, {name: value for name, value in block.items() if name not in _KNOWN_OF_CALL})
            elif self._after_text:
                got.aside("", [_END], of_text=True)
            self._after_text = kind == "text"
        elif event.get("type") in ("content_block_delta", "content_block_stop"):
            if at in self._others:
                self._others[at].append(event)
            elif delta and delta.get("type") not in ("text_delta", "input_json_delta"):
                got.aside(word(delta.get("type")), [event], of_text=True)

    def _use(self, used: dict[str, Any], got: StreamedReply) -> None:
        self._used |= {key: used[key] for key in (*_INPUTS, "output_tokens") if used.get(key) is not None}
        for usage in _usage(self._used):
            got.usage(usage)


def _start(index: int, block: dict[str, Any], got: StreamedReply) -> None:
    if _kind(block) == "call":
        got.call(index, word(block.get("id")), word(block.get("name")), otherwise=_arguments(block))
    elif _kind(block) == "text":
        got.text(word(block.get("text")))


def _delta(index: int, delta: dict[str, Any], got: StreamedReply) -> None:
    if delta.get("type") == "text_delta":
        got.text(word(delta.get("text")))
    elif delta.get("type") == "input_json_delta":
        got.more(index, word(delta.get("partial_json")))


class _AnthropicWriter(ReplyWriter):
    def __init__(self, completion: Completion, request: ModelRequest, like: OriginalStream) -> None:
        super().__init__(completion, like)
        start = obj(obj(like.first).get("message"))
        self._message = dict(start) if "id" in start else _fresh(completion, request)
        if completion.model:
            self._message["model"] = completion.model
        used = completion.usage
        was = next(iter(_usage(obj(start.get("usage")))), None)
        if used and (was is None or replace(was, output_tokens=used.output_tokens) != used):
            self._message["usage"] = _usage_of(replace(used, output_tokens=1))
        self._index = -1
        self._in_text = False

    def open(self) -> Iterator[bytes]:
        yield _event("message_start", message=self._message)

    def text(self, text: str) -> Iterator[bytes]:
        if not self._in_text:
            yield self._begin({"type": "text", "text": ""})
            self._in_text = True
        yield self._delta(type="text_delta", text=text)

    def call(self, call: ToolCall) -> Iterator[bytes]:
        yield from self._end_text()
        yield self._begin({**_block(call, self._beside()), "input": {}})
        for piece in pieces(call.arguments):
            yield self._delta(type="input_json_delta", partial_json=piece)
        yield _event("content_block_stop", index=self._index)

    def hollow(self) -> Iterator[bytes]:
        yield _event("ping")

    def aside(self, data: Any) -> Iterator[bytes]:
        """Events of a separate block, or of the open text block."""
        own = False
        for event in data:
            kind = event.get("type")
            if kind == "content_block_start":
                yield from self._end_text()
                yield self._begin(obj(event.get("content_block")))
                own = True
            elif kind == "content_block_delta" and (own or self._in_text):
                yield self._delta(**obj(event.get("delta")))
            elif kind == "content_block_stop" and not own:
                yield from self._end_text()
        if own:
            yield _event("content_block_stop", index=self._index)

    def trouble(self, trouble: ErrorChunk) -> Iterator[bytes]:
        yield sse.event(refusals.error("anthropic", trouble.kind, trouble.message), "error")

    def close(self) -> Iterator[bytes]:
        yield from self._end_text()
        used, last = self._now.usage, obj(self._like.last)
        delta = {"stop_reason": _STOP[self._now.finish], "stop_sequence": None}
        if self._now.finish == self._like.was.finish:
            delta |= obj(last.get("delta"))
        usage = {**obj(last.get("usage")), "output_tokens": used.output_tokens if used else 0}
        yield _event("message_delta", delta=delta, usage=usage)
        yield _event("message_stop")

    def _begin(self, block: dict[str, Any]) -> bytes:
        self._index += 1
        return _event("content_block_start", index=self._index, content_block=block)

    def _end_text(self) -> Iterator[bytes]:
        if self._in_text:
            self._in_text = False
            yield _event("content_block_stop", index=self._index)

    def _delta(self, /, **delta: Any) -> bytes:
        return _event("content_block_delta", index=self._index, delta=delta)


def _event(name: str, /, **fields: Any) -> bytes:
    return sse.event({"type": name, **fields}, name)


ANTHROPIC = Anthropic()
