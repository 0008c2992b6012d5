"""OpenAI's Chat Completions, which many other providers support, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from holdfast.model.completion import Completion, Delta, ErrorChunk, Finish, FinishReason, Text, ToolCall, Usage
from holdfast.planes.llm.codecs import openai_chat_request, refusals, sse
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.loose import count, items, json_text, obj, word
from holdfast.planes.llm.codecs.reply_writer import CREATED, ReplyWriter, mark, pieces
from holdfast.planes.llm.codecs.request import ModelRequest
from holdfast.planes.llm.codecs.streamed_reply import FormatReader, OriginalStream, StreamedReply

_FINISH: dict[str, FinishReason] = {
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}
_MADE_OF = ("reasoning_tokens", "audio_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens")
_CACHE = ("cached_tokens", "cache_write_tokens")
_KNOWN = ("role", "content", "tool_calls")
_KNOWN_OF_CALL = ("index", "id", "type", "function")
_DONE = b"data: [DONE]\n\n"


class OpenAIChat(Codec):
    """Chat Completions. Only the first of several choices is read and changed."""

    name = "openai_chat"
    provider = "openai"

    read_request = staticmethod(openai_chat_request.read_request)
    replace_results = staticmethod(openai_chat_request.replace_results)

    def reply(self, data: Any) -> Completion:
        fields = obj(data)
        model = word(fields.get("model"))
        if fields.get("error"):
            return Completion((refusals.trouble(fields),), model)
        usage = _usage(fields)
        if fields.get("choices") == []:
            return Completion(usage, model, "choices")
        choices = items(fields.get("choices"))
        choice = obj(choices[0]) if choices else {}
        message = obj(choice.get("message"))
        deltas: list[Delta] = [Text(text)] if (text := word(message.get("content"))) else []
        if "tool_calls" in message:
            deltas += [_call(call) for call in items(message["tool_calls"]) if _is_function(call)]
        deltas += _finish(choice)
        lacking = not message and "message" in choice and choice["message"] is None
        lacks: Literal["", "message"] = "message" if lacking else ""
        others = _others(choices) if len(choices) > 1 or "function_call" in message else ()
        return Completion((*deltas, *usage), model, lacks, other_calls=others)

    def reader(self, *, keep: bool = False) -> FormatReader:
        return FormatReader(sse.DataEvents(), _take, keep=keep)

    def written(self, completion: Completion, request: ModelRequest, like: dict[str, Any]) -> dict[str, Any]:
        was = self.reply(like)
        out = dict(like) if "id" in like else {**_fresh(completion, request), **like}
        if completion.model and completion.model != was.model:
            out["model"] = completion.model
        usage = completion.usage
        if usage and usage != was.usage:
            out["usage"] = _usage_of(usage)
        choices = _choices(items(like.get("choices")), was, completion)
        out["choices"] = choices if like else [{**one, "index": n} for one in choices for n in range(request.copies)]
        return out

    def writer(self, completion: Completion, request: ModelRequest, like: OriginalStream) -> ReplyWriter:
        return _ChatWriter(completion, request, like)


def _is_function(call: Any) -> bool:
    return isinstance(obj(call).get("function"), dict)


def _call(call: Any) -> ToolCall:
    function = obj(obj(call).get("function"))
    arguments = function.get("arguments")
    text = "" if arguments is None else json_text(arguments)
    return ToolCall(word(call.get("id")), word(function.get("name")), text)


def _others(choices: list[Any]) -> tuple[ToolCall, ...]:
    """The calls of further choices, and calls in the older `function_call` field."""
    messages = [obj(obj(choice).get("message")) for choice in choices]
    further = [
        _call(call) for message in messages[1:] for call in items(message.get("tool_calls")) if _is_function(call)
    ]
    old = [_call({"function": message["function_call"]}) for message in messages if obj(message.get("function_call"))]
    return (*further, *old)


def _finish(choice: dict[str, Any]) -> tuple[Finish, ...]:
    reason = word(choice.get("finish_reason"))
    return (Finish(_FINISH.get(reason, "stop")),) if reason else ()


def _usage(data: dict[str, Any]) -> tuple[Usage, ...]:
    used = obj(data.get("usage"))
    if not used:
        return ()
    details = obj(used.get("prompt_tokens_details"))
    cache = [count(details.get(key)) for key in _CACHE] if details else ()
    return (Usage(count(used.get("prompt_tokens")), count(used.get("completion_tokens")), *cache),)


def _usage_of(usage: Usage) -> dict[str, Any]:
    read, wrote = usage.input_tokens, usage.output_tokens
    cache = dict(zip(_CACHE, (usage.cached_input, usage.cache_written), strict=True))
    return {
        "prompt_tokens": read,
        "completion_tokens": wrote,
        "total_tokens": read + wrote,
        "prompt_tokens_details": {**cache, "audio_tokens": 0},
        "completion_tokens_details": dict.fromkeys(_MADE_OF, 0),
    }


def _fresh(completion: Completion, request: ModelRequest) -> dict[str, Any]:
    """A reply written by Holdfast, without its choices."""
    usage = completion.usage
    return {
        "id": f"chatcmpl-{mark(completion, request)}",
        "object": "chat.completion",
        "created": CREATED,
        "model": completion.model or request.model,
        "choices": [],
        "system_fingerprint": None,
        **request.echo,
    } | ({"usage": _usage_of(usage)} if usage else {})


def _choices(choices: list[Any], was: Completion, now: Completion) -> list[Any]:
    if now.lacks == "choices":
        return []
    first: dict[str, Any] = {"index": 0, "message": None, "logprobs": None, "finish_reason": None}
    first |= obj(choices[0]) if choices else {}
    if now.lacks == "message":
        first["message"] = None
    else:
        first["message"] = _message(obj(first["message"]), was, now)
    finish = now.finish
    if finish != was.finish:
        first["finish_reason"] = finish
    return [first, *choices[1:]]


def _message(old: dict[str, Any], was: Completion, now: Completion) -> dict[str, Any]:
    message = {"role": "assistant", "content": None, "refusal": None, **(old or {"annotations": []})}
    text, calls = now.text, now.tool_calls
    if calls != was.tool_calls:
        olds = [call for call in items(message.get("tool_calls")) if _is_function(call)]
        message["tool_calls"] = [_wire_call(call, olds[at] if at < len(olds) else {}) for at, call in enumerate(calls)]
        if not calls:
            del message["tool_calls"]
    if text != was.text or not old:
        message["content"] = text or (None if calls else "")
    return message


def _wire_call(call: ToolCall, old: dict[str, Any]) -> dict[str, Any]:
    function = {**obj(old.get("function")), "name": call.name, "arguments": call.arguments}
    return {**old, "id": call.id or f"call_{call.name}", "type": "function", "function": function}


def _take(chunk: dict[str, Any], got: StreamedReply) -> None:
    """Reads one chunk of a stream."""
    if chunk.get("error"):
        return got.trouble(refusals.trouble(chunk))
    got.model = got.model or word(chunk.get("model"))
    usage = _usage(chunk)
    if usage:
        got.usage(usage[0])
        got.last = chunk
    elif chunk.get("choices") == []:
        got.hollow()
    for choice in map(obj, items(chunk.get("choices"))):
        _take_others(choice, got)
        if not choice.get("index"):
            _take_choice(choice, got)
            if got.keep:
                _keep(choice, got)
        else:
            got.aside("further choices", choice)
    return None


def _keep(choice: dict[str, Any], got: StreamedReply) -> None:
    """Keeps the parts of a choice that the neutral form does not support."""
    delta = obj(choice.get("delta"))
    more = {name: value for name, value in delta.items() if name not in _KNOWN and value not in (None, "", [])}
    if more:
        got.aside(", ".join(more), _choice(more))
    if choice.get("logprobs"):
        got.aside("logprobs", {**_choice({}), "logprobs": choice["logprobs"]}, of_text=True)
    for at, call in enumerate(map(obj, items(delta.get("tool_calls")))):
        index = call.get("index")
        fields = {name: value for name, value in call.items() if name not in _KNOWN_OF_CALL}
        got.beside(index if isinstance(index, int) else at, fields)


def _take_choice(choice: dict[str, Any], got: StreamedReply) -> None:
    delta = obj(choice.get("delta"))
    got.text(word(delta.get("content")))
    for at, call in enumerate(map(obj, items(delta.get("tool_calls")))):
        index = call.get("index")
        made = _call(call)
        got.call(index if isinstance(index, int) else at, made.id, made.name, made.arguments)
    for finish in _finish(choice):
        got.finish(finish.reason)


def _take_others(choice: dict[str, Any], got: StreamedReply) -> None:
    """Like `_others`, for one chunk."""
    n, delta = choice.get("index") or 0, obj(choice.get("delta"))
    for at, call in enumerate(map(obj, items(delta.get("tool_calls")) if n else [])):
        made = _call(call)
        got.other_call(f"{n}.{call.get('index', at)}", made.id, made.name, made.arguments)
    if function := obj(delta.get("function_call")):
        made = _call({"function": function})
        got.other_call(f"{n}", "", made.name, made.arguments)


class _ChatWriter(ReplyWriter):
    def __init__(self, completion: Completion, request: ModelRequest, like: OriginalStream) -> None:
        super().__init__(completion, like)
        self._with_usage = request.with_usage
        first = obj(like.first)
        self._base = dict(first) if "id" in first else {**_fresh(completion, request), **first}
        self._base["object"] = "chat.completion.chunk"
        self._base.pop("usage", None)
        if completion.model:
            self._base["model"] = completion.model
        self._copies = 1 if first else request.copies

    def open(self) -> Iterator[bytes]:
        if self._now.lacks == "choices":
            yield self._chunk([])
        elif self._now.lacks == "message":
            yield from self._said(_choice(None))
        else:
            yield from self._delta(role="assistant", content=None if self._now.tool_calls else "", refusal=None)

    def text(self, text: str) -> Iterator[bytes]:
        yield from self._delta(content=text)

    def call(self, call: ToolCall) -> Iterator[bytes]:
        at = self._calls
        begun = _wire_call(ToolCall(call.id, call.name, ""), self._beside())
        yield from self._delta(tool_calls=[{"index": at, **begun}])
        for piece in pieces(call.arguments):
            yield from self._delta(tool_calls=[{"index": at, "function": {"arguments": piece}}])

    def hollow(self) -> Iterator[bytes]:
        yield self._chunk([])

    def aside(self, data: Any) -> Iterator[bytes]:
        yield self._chunk([data])

    def trouble(self, trouble: ErrorChunk) -> Iterator[bytes]:
        yield sse.event(refusals.error("openai", trouble.kind, trouble.message))

    def close(self) -> Iterator[bytes]:
        if self._now.finish and self._now.lacks != "choices":
            yield from self._said(_choice(None if self._now.lacks else {}, self._now.finish))
        used = self._now.usage
        if used and self._with_usage:
            usage = obj(self._like.last).get("usage") if used == self._like.was.usage else None
            yield sse.event({**self._base, "choices": [], "usage": usage or _usage_of(used)})
        yield _DONE

    def _delta(self, **delta: Any) -> Iterator[bytes]:
        return self._said(_choice(delta))

    def _said(self, choice: dict[str, Any]) -> Iterator[bytes]:
        """A delta for every choice of a reply written by Holdfast; all choices are equal."""
        return (self._chunk([{**choice, "index": n}]) for n in range(self._copies))

    def _chunk(self, choices: list[Any]) -> bytes:
        return sse.event({**self._base, "choices": choices})


def _choice(delta: dict[str, Any] | None, finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


OPENAI_CHAT = OpenAIChat()
