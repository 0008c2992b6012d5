"""OpenAI's Chat Completions, which many other providers support, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.model.completion import Completion, FinishReason, ToolCall, Usage
from holdfast.planes.llm.codecs import error_replies, openai_chat_request
from holdfast.planes.llm.codecs.codec import CREATED, Codec, ReplyWriter, derive_id, split_pieces
from holdfast.planes.llm.codecs.loose import as_count, as_dict, as_list, as_text, read_arguments
from holdfast.planes.llm.codecs.request import ModelRequest
from holdfast.planes.llm.codecs.streamed_reply import EventReader, OriginalStream, StreamedReply

_FINISH: dict[str, FinishReason] = {
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}
_OUTPUT_DETAILS = ("reasoning_tokens", "audio_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens")
_CACHE = ("cached_tokens", "cache_write_tokens")
_KNOWN = ("role", "content", "tool_calls")
_KNOWN_OF_CALL = ("index", "id", "type", "function")
_DONE = b"data: [DONE]\n\n"


def _is_function(call: Any) -> bool:
    return isinstance(as_dict(call).get("function"), dict)


def _read_call(call: Any) -> ToolCall:
    function = as_dict(as_dict(call).get("function"))
    arguments = read_arguments(function.get("arguments"), "")
    return ToolCall(as_text(call.get("id")), as_text(function.get("name")), arguments)


def _to_stream(n: int, choice: Any) -> dict[str, Any]:
    """Return a choice of a plain reply as a stream would send it."""
    fields = as_dict(choice)
    message = as_dict(fields.get("message"))
    calls = filter(_is_function, as_list(message.get("tool_calls")))
    return {
        **fields,
        "index": n,
        "delta": {**message, "tool_calls": [{**c, "index": at} for at, c in enumerate(calls)]},
    }


def _read_usage(used: dict[str, Any]) -> Usage:
    details = as_dict(used.get("prompt_tokens_details"))
    cache = [as_count(details.get(key)) for key in _CACHE] if details else ()
    return Usage(as_count(used.get("prompt_tokens")), as_count(used.get("completion_tokens")), *cache)


def _write_message(old: dict[str, Any], before: Completion, after: Completion) -> dict[str, Any]:
    message = {"role": "assistant", "content": None, "refusal": None, **(old or {"annotations": []})}
    text, calls = after.text, after.tool_calls
    if calls != before.tool_calls:
        olds = [call for call in as_list(message.get("tool_calls")) if _is_function(call)]
        message["tool_calls"] = [_write_call(call, olds[at] if at < len(olds) else {}) for at, call in enumerate(calls)]
        if not calls:
            del message["tool_calls"]
    if text != before.text or not old:
        message["content"] = text or (None if calls else "")
    return message


def _write_call(call: ToolCall, old: dict[str, Any]) -> dict[str, Any]:
    function = {**as_dict(old.get("function")), "name": call.name, "arguments": call.arguments}
    return {**old, "id": call.id or f"call_{call.name}", "type": "function", "function": function}


def _read_chunk(chunk: dict[str, Any], reply: StreamedReply) -> None:
    """Read a complete reply, in the form of a chunk, or one chunk of a stream."""
    reply.model = reply.model or as_text(chunk.get("model"))
    if chunk.get("error"):
        return reply.set_error(error_replies.read_error(chunk))
    if used := as_dict(chunk.get("usage")):
        reply.set_usage(_read_usage(used))
        reply.last = chunk
    elif chunk.get("choices") == []:
        reply.add_empty()
    for choice in map(as_dict, as_list(chunk.get("choices"))):
        _read_others(choice, reply)
        if not choice.get("index"):
            _read_choice(choice, reply)
    return None


def _read_event(chunk: dict[str, Any], reply: StreamedReply) -> None:
    """Read one chunk of a stream, and keep the parts that the neutral form does not support."""
    _read_chunk(chunk, reply)
    for choice in map(as_dict, as_list(chunk.get("choices"))):
        if choice.get("index"):
            reply.add_extra("further choices", choice)
        else:
            _keep_other(choice, reply)


def _keep_other(choice: dict[str, Any], reply: StreamedReply) -> None:
    """Keep the parts of a choice that the neutral form does not support."""
    delta = as_dict(choice.get("delta"))
    more = {name: value for name, value in delta.items() if name not in _KNOWN and value not in (None, "", [])}
    if more:
        reply.add_extra(", ".join(more), _build_choice(more))
    if choice.get("logprobs"):
        reply.add_extra("logprobs", {**_build_choice({}), "logprobs": choice["logprobs"]}, of_text=True)
    for at, call in enumerate(map(as_dict, as_list(delta.get("tool_calls")))):
        index = call.get("index")
        fields = {name: value for name, value in call.items() if name not in _KNOWN_OF_CALL}
        reply.add_call_fields(index if isinstance(index, int) else at, fields)


def _read_choice(choice: dict[str, Any], reply: StreamedReply) -> None:
    delta = as_dict(choice.get("delta"))
    reply.add_text(as_text(delta.get("content")))
    for at, call in enumerate(map(as_dict, as_list(delta.get("tool_calls")))):
        index = call.get("index")
        piece = _read_call(call)
        reply.add_call(index if isinstance(index, int) else at, piece.id, piece.name, piece.arguments)
    if reason := as_text(choice.get("finish_reason")):
        reply.set_finish(_FINISH.get(reason, "stop"))


def _read_others(choice: dict[str, Any], reply: StreamedReply) -> None:
    """Read the calls of further choices, and calls in the older `function_call` field."""
    n, delta = choice.get("index") or 0, as_dict(choice.get("delta"))
    for at, call in enumerate(map(as_dict, as_list(delta.get("tool_calls")) if n else [])):
        piece = _read_call(call)
        reply.add_other_call(f"{n}.{call.get('index', at)}", piece.id, piece.name, piece.arguments)
    if function := as_dict(delta.get("function_call")):
        piece = _read_call({"function": function})
        reply.add_other_call(f"{n}", "", piece.name, piece.arguments)


class _ChatWriter(ReplyWriter):
    def __init__(self, codec: Codec, completion: Completion, request: ModelRequest, original: OriginalStream) -> None:
        super().__init__(codec, completion, request, original)
        self._base["object"] = "chat.completion.chunk"
        self._base.pop("usage", None)

    def write_start(self) -> Iterator[bytes]:
        if self._completion.lacks == "choices":
            yield self._write_chunk([])
        elif self._completion.lacks == "message":
            yield from self._write_choice_chunks(_build_choice(None))
        else:
            content = None if self._completion.tool_calls else ""
            yield from self._write_delta(role="assistant", content=content, refusal=None)

    def write_text(self, text: str) -> Iterator[bytes]:
        yield from self._write_delta(content=text)

    def write_call(self, call: ToolCall) -> Iterator[bytes]:
        at = self._calls
        begun = _write_call(ToolCall(call.id, call.name, ""), self._take_call_fields())
        yield from self._write_delta(tool_calls=[{"index": at, **begun}])
        for piece in split_pieces(call.arguments):
            yield from self._write_delta(tool_calls=[{"index": at, "function": {"arguments": piece}}])

    def write_empty(self) -> Iterator[bytes]:
        yield self._write_chunk([])

    def write_extra(self, data: Any) -> Iterator[bytes]:
        yield self._write_chunk([data])

    def write_end(self) -> Iterator[bytes]:
        finish, lacks = self._completion.finish, self._completion.lacks
        if finish and lacks != "choices":
            yield from self._write_choice_chunks(_build_choice(None if lacks else {}, finish))
        if self._request.with_usage and (usage := self._write_usage()):
            yield self._format({**self._base, "choices": [], **usage})
        yield _DONE

    def _write_delta(self, **delta: Any) -> Iterator[bytes]:
        return self._write_choice_chunks(_build_choice(delta))

    def _write_choice_chunks(self, choice: dict[str, Any]) -> Iterator[bytes]:
        """Return a delta for every choice of a reply written by Holdfast; all choices are equal."""
        return (self._write_chunk([{**choice, "index": n}]) for n in range(self._copies))

    def _write_chunk(self, choices: list[Any]) -> bytes:
        return self._format({**self._base, "choices": choices})


def _build_choice(delta: dict[str, Any] | None, finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


class OpenAIChat(Codec):
    """Chat Completions. Only the first of several choices is read and changed."""

    name = "openai_chat"
    provider = "openai"
    writer = _ChatWriter
    read_request = staticmethod(openai_chat_request.read_request)
    read_conversation = staticmethod(openai_chat_request.read_conversation)
    write_result = staticmethod(openai_chat_request.write_result)

    def read_reply(self, data: Any) -> Completion:
        fields, reply = as_dict(data), StreamedReply()
        choices = as_list(fields.get("choices"))
        _read_chunk({**fields, "choices": [_to_stream(n, choice) for n, choice in enumerate(choices)] or None}, reply)
        if fields.get("choices") == [] and not fields.get("error"):
            reply.lacks = "choices"
        elif choices and not fields.get("error") and as_dict(choices[0]).get("message", ()) is None:
            reply.lacks = "message"
        return reply.build_completion()

    def create_event_reader(self) -> EventReader:
        return _read_event

    def write_usage(self, usage: Usage) -> dict[str, Any]:
        read, wrote = usage.input_tokens, usage.output_tokens
        cache = dict(zip(_CACHE, (usage.cached_input, usage.cache_written), strict=True))
        counts = {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote}
        details = {"prompt_tokens_details": {**cache, "audio_tokens": 0}}
        return {"usage": {**counts, **details, "completion_tokens_details": dict.fromkeys(_OUTPUT_DETAILS, 0)}}

    def build_empty(self, completion: Completion, request: ModelRequest) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{derive_id(completion, request)}",
            "object": "chat.completion",
            "created": CREATED,
            "model": request.model,
            "choices": [],
            "system_fingerprint": None,
        } | request.echo

    def write_content(self, out: dict[str, Any], before: Completion, after: Completion, copies: int) -> None:
        choices = as_list(out.get("choices"))
        first = {"index": 0, "message": None, "logprobs": None, "finish_reason": None} | as_dict((choices or [{}])[0])
        first["message"] = None if after.lacks else _write_message(as_dict(first["message"]), before, after)
        if after.finish != before.finish:
            first["finish_reason"] = after.finish
        copied = [{**first, "index": n} for n in range(copies)] if copies > 1 else [first]
        out["choices"] = [] if after.lacks == "choices" else [*copied, *choices[1:]]


OPENAI_CHAT = OpenAIChat()
