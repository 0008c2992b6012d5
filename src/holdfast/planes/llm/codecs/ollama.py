"""Ollama's chat and generate: a stream is one JSON object per line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from holdfast.model.completion import Completion, ErrorChunk, ToolCall, Usage
from holdfast.planes.llm.codecs import refusals
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.loose import as_object, count, dump, items, json_text, number, obj, text_in, whole, word
from holdfast.planes.llm.codecs.openai_chat_request import declared
from holdfast.planes.llm.codecs.reply_writer import ReplyWriter
from holdfast.planes.llm.codecs.request import ChatMessage, Conversation, ModelRequest, Role
from holdfast.planes.llm.codecs.sse import StreamLines
from holdfast.planes.llm.codecs.streamed_reply import FormatReader, OriginalStream, StreamedReply

_ROLES: dict[str, Role] = {"system": "system", "assistant": "assistant"}
_KNOWN = (
    "model", "created_at", "message", "response", "thinking", "done", "done_reason", "prompt_eval_count", "eval_count"
)  # fmt: skip
_TOOK = dict.fromkeys(("total_duration", "load_duration", "prompt_eval_duration", "eval_duration"), 1_000_000)
"""The durations that a reply written by Holdfast states, in nanoseconds: clients divide by them."""
_CREATED_AT = "2026-01-01T00:00:00Z"


def read_request(path: str, body: Mapping[str, Any]) -> ModelRequest:
    """Reads a request. It streams unless it says otherwise."""
    options = obj(body.get("options"))
    wanted = (("logprobs", body.get("logprobs") is True), ("an image", bool(body.get("width") or body.get("height"))))
    return ModelRequest(
        word(body.get("model")),
        _messages(body),
        declared(body),
        body.get("stream") is not False,
        max_tokens=whole(options.get("num_predict")),
        temperature=number(options.get("temperature")),
        json_reply=bool(body.get("format")),
        schema=obj(body.get("format")) or None,
        unscriptable=tuple([name for name, wants in wanted if wants]),
    )


def replace_results(body: Mapping[str, Any], changed: Mapping[str, str], failed: frozenset[str]) -> dict[str, Any]:
    """The request with other texts in its tool results. This format cannot mark a failed tool."""
    if not isinstance(body.get("messages"), list):
        return dict(body)
    keys = iter([result.key for message in _messages(body) for result in message.results])
    return {**body, "messages": [_changed(message, keys, changed) for message in items(body.get("messages"))]}


def _messages(body: Mapping[str, Any]) -> tuple[ChatMessage, ...]:
    conversation = Conversation()
    if system := word(body.get("system")):
        conversation.say("system", system)
    if prompt := word(body.get("prompt")):
        conversation.say("user", prompt)
    for entry in items(body.get("messages")):
        message = obj(entry)
        role, text = word(message.get("role")), text_in(message.get("content"))
        if role == "tool":
            name = word(message.get("tool_name")) or word(message.get("name"))
            conversation.result(word(message.get("tool_call_id")), name, text)
            continue
        conversation.say(_ROLES.get(role, "user"), text)
        for call in map(obj, items(message.get("tool_calls"))):
            function = obj(call.get("function"))
            call_arguments = function.get("arguments")
            arguments = "{}" if call_arguments is None else json_text(call_arguments)
            conversation.call(word(call.get("id")), word(function.get("name")), arguments)
    return conversation.messages()


def _changed(message: Any, keys: Iterator[str], changed: Mapping[str, str]) -> Any:
    if obj(message).get("role") != "tool":
        return message
    key = next(keys)
    return {**message, "content": changed[key]} if key in changed else message


class Ollama(Codec):
    """Both of Ollama's formats: `chat` has a message and tool calls, `generate` only text."""

    provider = "ollama"
    stream_type = "application/x-ndjson"
    read_request = staticmethod(read_request)
    replace_results = staticmethod(replace_results)

    def __init__(self, *, chat: bool) -> None:
        self.name = "ollama_chat" if chat else "ollama_generate"
        self._chat = chat

    def reply(self, data: Any) -> Completion:
        got = StreamedReply()
        _take(obj(data), got)
        return got.completion()

    def reader(self, *, keep: bool = False) -> FormatReader:
        return FormatReader(StreamLines(), _take_line, keep=keep)

    def written(self, completion: Completion, request: ModelRequest, like: dict[str, Any]) -> dict[str, Any]:
        was, out = self.reply(like), {**_start(completion, request), "done": True, **(like or _TOOK)}
        if completion.model:
            out["model"] = completion.model
        if completion.usage and completion.usage != was.usage:
            out |= _usage_of(completion)
        if completion.finish != was.finish:
            out |= _ending(completion)
        if self._chat:
            out["message"] = (
                None if completion.lacks == "message" else _message(obj(like.get("message")), was, completion)
            )
        else:
            out["response"] = None if completion.lacks == "message" else "" if completion.lacks else completion.text
        return out

    def writer(self, completion: Completion, request: ModelRequest, like: OriginalStream) -> ReplyWriter:
        return _OllamaWriter(completion, request, like, self._chat)

    def delivered(self, completion: Completion) -> Completion:
        calls = [call for call in completion.tool_calls if as_object(call.arguments) is not None]
        if len(calls) == len(completion.tool_calls):
            return completion
        others = [delta for delta in completion.deltas if not isinstance(delta, ToolCall) or delta in calls]
        return replace(completion, deltas=tuple(others)).with_text(_text_of(completion))


def _take(data: dict[str, Any], got: StreamedReply) -> None:
    """Reads one object: a complete reply, or a line of a stream."""
    if data.get("error"):
        return got.trouble(refusals.trouble(data))
    got.model = got.model or word(data.get("model"))
    message = obj(data.get("message"))
    text = word(message.get("content")) or word(data.get("response"))
    got.text(text)
    for at, call in enumerate(map(obj, items(message.get("tool_calls")))):
        function = obj(call.get("function"))
        arguments = function.get("arguments")
        key = f"{got.count}.{at}"  # calls are never split, and their index is unreliable
        got.call(
            key, word(call.get("id")), word(function.get("name")), "{}" if arguments is None else json_text(arguments)
        )
    if data.get("done") is True:
        _end(data, got)
    return None


def _end(data: dict[str, Any], got: StreamedReply) -> None:
    if reason := word(data.get("done_reason")):
        got.finish("length" if reason == "length" else "tool_calls" if got.calls else "stop")
    if "prompt_eval_count" in data or "eval_count" in data:
        got.usage(Usage(count(data.get("prompt_eval_count")), count(data.get("eval_count"))))


def _text_of(completion: Completion) -> str:
    """The text. A call whose arguments are not an object becomes text, too: Ollama shows calls it cannot parse
    that way."""
    broken = [call for call in completion.tool_calls if as_object(call.arguments) is None]
    return completion.text + "".join([f'{{"name": "{call.name}", "arguments": {call.arguments}}}' for call in broken])


def _message(old: dict[str, Any], was: Completion, now: Completion) -> dict[str, Any]:
    message = {"role": "assistant", "content": "", **old}
    if now.text != was.text or now.tool_calls != was.tool_calls:
        message["content"] = _text_of(now)
    if now.tool_calls != was.tool_calls:
        message["tool_calls"] = _calls(now.tool_calls)
        if not message["tool_calls"]:
            del message["tool_calls"]
    if now.lacks:
        return {"role": "assistant", "content": ""}
    return message


def _calls(calls: tuple[ToolCall, ...]) -> list[dict[str, Any]]:
    return [
        {**({"id": call.id} if call.id else {}), "function": {"index": at, "name": call.name, "arguments": arguments}}
        for at, call in enumerate(calls)
        if (arguments := as_object(call.arguments)) is not None
    ]


def _start(completion: Completion, request: ModelRequest) -> dict[str, Any]:
    return {"model": completion.model or request.model, "created_at": _CREATED_AT}


def _ending(completion: Completion) -> dict[str, Any]:
    if completion.finish is None:
        return {}
    return {"done_reason": "length" if completion.finish == "length" else "stop"}


def _usage_of(completion: Completion) -> dict[str, Any]:
    usage = completion.usage or Usage(0, 0)
    return {"prompt_eval_count": usage.input_tokens, "eval_count": usage.output_tokens}


def _take_line(data: dict[str, Any], got: StreamedReply) -> None:
    before = got.count
    _take(data, got)
    thinks = data.get("thinking") or obj(data.get("message")).get("thinking")
    if thinks:
        got.aside("thinking", thinks)
    if data.get("done") is True:
        got.last = data
    if got.count == before and data.get("done") is False and not thinks:
        got.hollow()


class _OllamaWriter(ReplyWriter):
    def __init__(self, completion: Completion, request: ModelRequest, like: OriginalStream, chat: bool) -> None:
        super().__init__(completion, like)
        self._chat = chat
        first = obj(like.first)
        self._base = _start(completion, request) | {key: first[key] for key in ("model", "created_at") if key in first}
        if completion.model:
            self._base["model"] = completion.model

    def text(self, text: str) -> Iterator[bytes]:
        yield self._line(text)

    def call(self, call: ToolCall) -> Iterator[bytes]:
        if not self._chat:
            return
        calls = _calls((call,))
        yield self._line("", calls) if calls else self._line(_text_of(Completion((call,))))

    def hollow(self) -> Iterator[bytes]:
        yield self._line("")

    def aside(self, data: Any) -> Iterator[bytes]:
        """A thought: in the message, or next to the text if there is no message."""
        if self._chat:
            yield self._line("", message={"role": "assistant", "content": "", "thinking": data})
        else:
            yield self._line("", thinking=data)

    def trouble(self, trouble: ErrorChunk) -> Iterator[bytes]:
        yield dump(refusals.error("ollama", trouble.kind, trouble.message)) + b"\n"

    def close(self) -> Iterator[bytes]:
        more = {name: value for name, value in obj(self._like.last).items() if name not in _KNOWN}
        ending = {**(more or _TOOK), "done": True, **_ending(self._now)}
        if self._now.usage:
            ending |= _usage_of(self._now)
        if self._now.lacks == "message":
            ending["message" if self._chat else "response"] = None
        yield self._line("", **ending)

    def _line(self, text: str, calls: list[Any] | None = None, /, **more: Any) -> bytes:
        message = {"role": "assistant", "content": text} | ({"tool_calls": calls} if calls else {})
        content = {"message": message} if self._chat else {"response": text}
        return dump({**self._base, **content, "done": False, **more}) + b"\n"


OLLAMA_CHAT = Ollama(chat=True)
OLLAMA_GENERATE = Ollama(chat=False)
