"""Ollama's chat and generate: a stream is one JSON object per line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from holdfast.model.completion import Completion, ToolCall, Usage
from holdfast.planes.llm.codecs import error_replies, sse
from holdfast.planes.llm.codecs.codec import Codec, ReplyWriter
from holdfast.planes.llm.codecs.loose import (
    as_count,
    as_dict,
    as_list,
    as_number,
    as_optional_count,
    as_raw_object,
    as_text,
    dump_json,
    read_arguments,
    read_text,
)
from holdfast.planes.llm.codecs.openai_chat_request import read_tools
from holdfast.planes.llm.codecs.request import Conversation, ModelRequest, Role
from holdfast.planes.llm.codecs.streamed_reply import EventReader, StreamedReply

_ROLES: dict[str, Role] = {"system": "system", "assistant": "assistant"}
_KNOWN = (
    "model", "created_at", "message", "response", "thinking", "done", "done_reason", "prompt_eval_count", "eval_count"
)  # fmt: skip
_DURATIONS = dict.fromkeys(("total_duration", "load_duration", "prompt_eval_duration", "eval_duration"), 1_000_000)
"""The durations that a reply written by Holdfast states, in nanoseconds: clients divide by them."""
_CREATED_AT = "2026-01-01T00:00:00Z"


def read_request(path: str, body: Mapping[str, Any]) -> ModelRequest:
    """Read a request. It streams unless it says otherwise."""
    options = as_dict(body.get("options"))
    wanted = (("logprobs", body.get("logprobs") is True), ("an image", bool(body.get("width") or body.get("height"))))
    return ModelRequest(
        as_text(body.get("model")),
        read_conversation(body).build_messages(),
        read_tools(body),
        body.get("stream") is not False,
        max_tokens=as_optional_count(options.get("num_predict")),
        temperature=as_number(options.get("temperature")),
        json_reply=bool(body.get("format")),
        schema=as_dict(body.get("format")) or None,
        unscriptable=tuple([name for name, is_wanted in wanted if is_wanted]),
    )


def read_conversation(body: Mapping[str, Any]) -> Conversation:
    """Read the messages of a request."""
    conversation = Conversation()
    if system := as_text(body.get("system")):
        conversation.add_message("system", system)
    if prompt := as_text(body.get("prompt")):
        conversation.add_message("user", prompt)
    for entry in as_list(body.get("messages")):
        message = as_dict(entry)
        role, text = as_text(message.get("role")), read_text(message.get("content"))
        if role == "tool":
            name = as_text(message.get("tool_name")) or as_text(message.get("name"))
            conversation.add_result(message, as_text(message.get("tool_call_id")), name, text)
            continue
        conversation.add_message(_ROLES.get(role, "user"), text)
        for call in map(as_dict, as_list(message.get("tool_calls"))):
            function = as_dict(call.get("function"))
            arguments = read_arguments(function.get("arguments"))
            conversation.add_call(as_text(call.get("id")), as_text(function.get("name")), arguments)
    return conversation


def write_result(message: dict[str, Any], text: str, failed: bool) -> None:
    """Write another text into a result. This format cannot mark a failed tool."""
    message["content"] = text


def _read_object(data: dict[str, Any], reply: StreamedReply) -> None:
    """Read one object: a complete reply, or a line of a stream."""
    if data.get("error"):
        return reply.set_error(error_replies.read_error(data))
    reply.model = reply.model or as_text(data.get("model"))
    message = as_dict(data.get("message"))
    text = as_text(message.get("content")) or as_text(data.get("response"))
    reply.add_text(text)
    for at, call in enumerate(map(as_dict, as_list(message.get("tool_calls")))):
        function = as_dict(call.get("function"))
        key = f"{reply.count}.{at}"  # calls are never split, and their index is unreliable
        arguments = read_arguments(function.get("arguments"))
        reply.add_call(key, as_text(call.get("id")), as_text(function.get("name")), arguments)
    if data.get("done") is True:
        if reason := as_text(data.get("done_reason")):
            reply.set_finish("length" if reason == "length" else "tool_calls" if reply.has_calls else "stop")
        if "prompt_eval_count" in data or "eval_count" in data:
            reply.set_usage(Usage(as_count(data.get("prompt_eval_count")), as_count(data.get("eval_count"))))
    return None


def _write_text(completion: Completion) -> str:
    """Return the text. A call whose arguments are not an object becomes text, too: Ollama shows calls it cannot parse
    that way."""
    broken = [call for call in completion.tool_calls if as_raw_object(call.arguments) is None]
    return completion.text + "".join([f'{{"name": "{call.name}", "arguments": {call.arguments}}}' for call in broken])


def _write_message(old: dict[str, Any], before: Completion, after: Completion) -> dict[str, Any]:
    if after.lacks:
        return _build_message()
    message = {**_build_message(), **old}
    if after.text != before.text or after.tool_calls != before.tool_calls:
        message["content"] = _write_text(after)
    if after.tool_calls != before.tool_calls:
        message["tool_calls"] = _write_calls(after.tool_calls)
        if not message["tool_calls"]:
            del message["tool_calls"]
    return message


def _write_calls(calls: tuple[ToolCall, ...]) -> list[dict[str, Any]]:
    return [
        {**({"id": call.id} if call.id else {}), "function": {"index": at, "name": call.name, "arguments": arguments}}
        for at, call in enumerate(calls)
        if (arguments := as_raw_object(call.arguments)) is not None
    ]


def _write_ending(completion: Completion) -> dict[str, Any]:
    if completion.finish is None:
        return {}
    return {"done_reason": "length" if completion.finish == "length" else "stop"}


def _read_line(data: dict[str, Any], reply: StreamedReply) -> None:
    before = reply.count
    _read_object(data, reply)
    thinks = data.get("thinking") or as_dict(data.get("message")).get("thinking")
    if thinks:
        reply.add_extra("thinking", thinks)
    if data.get("done") is True:
        reply.last = data
    if reply.count == before and data.get("done") is False and not thinks:
        reply.add_empty()


class _GenerateWriter(ReplyWriter):
    """Writes a stream of `generate`, which has no tool calls."""

    content_field = "response"

    def write_text(self, text: str) -> Iterator[bytes]:
        yield self._write_line({"response": text})

    def write_call(self, call: ToolCall) -> Iterator[bytes]:
        return iter(())

    def write_empty(self) -> Iterator[bytes]:
        return self.write_text("")

    def write_extra(self, data: Any) -> Iterator[bytes]:
        """Write a thought."""
        yield self._write_line({"thinking": data})

    def write_end(self) -> Iterator[bytes]:
        more = {name: value for name, value in as_dict(self._original.last).items() if name not in _KNOWN}
        ending = {**(more or _DURATIONS), "done": True, **_write_ending(self._completion), **self._write_usage()}
        if self._completion.lacks == "message":
            ending[self.content_field] = None
        yield self._write_line(ending)

    def _write_line(self, fields: dict[str, Any]) -> bytes:
        return self._format({**self._base, "response": "", "done": False} | fields)

    def _format(self, data: Any) -> bytes:
        return dump_json(data) + b"\n"


class _OllamaChatWriter(_GenerateWriter):
    """Writes a stream of `chat`, where text, calls and thoughts are in a message."""

    content_field = "message"

    def write_text(self, text: str) -> Iterator[bytes]:
        yield self._write_line({"message": _build_message(text)})

    def write_call(self, call: ToolCall) -> Iterator[bytes]:
        calls = _write_calls((call,))
        text = "" if calls else _write_text(Completion((call,)))
        yield self._write_line({"message": _build_message(text) | ({"tool_calls": calls} if calls else {})})

    def write_extra(self, data: Any) -> Iterator[bytes]:
        yield self._write_line({"message": {**_build_message(), "thinking": data}})

    def _write_line(self, fields: dict[str, Any]) -> bytes:
        return self._format({**self._base, "message": _build_message(), "done": False} | fields)


def _build_message(text: str = "") -> dict[str, Any]:
    return {"role": "assistant", "content": text}


class Ollama(Codec):
    """Both of Ollama's formats: `chat` has a message and tool calls, `generate` only text."""

    provider = "ollama"
    stream_type = "application/x-ndjson"
    split_stream = staticmethod(sse.read_lines)
    read_request = staticmethod(read_request)
    read_conversation = staticmethod(read_conversation)
    write_result = staticmethod(write_result)

    def __init__(self, *, chat: bool) -> None:
        self.name = "ollama_chat" if chat else "ollama_generate"
        self.writer = _OllamaChatWriter if chat else _GenerateWriter
        self._chat = chat

    def read_reply(self, data: Any) -> Completion:
        reply = StreamedReply()
        _read_object(as_dict(data), reply)
        return reply.build_completion()

    def create_event_reader(self) -> EventReader:
        return _read_line

    def find_head(self, event: dict[str, Any]) -> dict[str, Any]:
        return {key: event[key] for key in ("model", "created_at") if key in event}

    def write_usage(self, usage: Usage) -> dict[str, Any]:
        return {"prompt_eval_count": usage.input_tokens, "eval_count": usage.output_tokens}

    def build_empty(self, completion: Completion, request: ModelRequest) -> dict[str, Any]:
        return {"model": request.model, "created_at": _CREATED_AT}

    def write_content(self, out: dict[str, Any], before: Completion, after: Completion, copies: int) -> None:
        if "done" not in out:
            out |= {"done": True, **_DURATIONS}
        if after.finish != before.finish:
            out |= _write_ending(after)
        if not self._chat:
            out["response"] = None if after.lacks == "message" else "" if after.lacks else after.text
        elif after.lacks == "message":
            out["message"] = None
        else:
            out["message"] = _write_message(as_dict(out.get("message")), before, after)

    def keep_deliverable(self, completion: Completion) -> Completion:
        calls = [call for call in completion.tool_calls if as_raw_object(call.arguments) is not None]
        if len(calls) == len(completion.tool_calls):
            return completion
        others = [delta for delta in completion.deltas if not isinstance(delta, ToolCall) or delta in calls]
        return replace(completion, deltas=tuple(others)).with_text(_write_text(completion))


OLLAMA_CHAT = Ollama(chat=True)
OLLAMA_GENERATE = Ollama(chat=False)
