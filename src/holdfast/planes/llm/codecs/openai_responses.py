"""OpenAI's Responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.model.completion import Completion, ErrorChunk, FinishReason, ToolCall, Usage
from holdfast.planes.llm.codecs import error_replies, openai_responses_read, sse
from holdfast.planes.llm.codecs.codec import (
    CREATED,
    Codec,
    PartFormat,
    ReplyWriter,
    derive_id,
    edit_parts,
    split_pieces,
)
from holdfast.planes.llm.codecs.loose import as_dict, as_list, as_text, dump_json
from holdfast.planes.llm.codecs.openai_responses_read import (
    CACHE,
    ResponseEvents,
    find_kind,
    read_response,
)
from holdfast.planes.llm.codecs.request import ModelRequest
from holdfast.planes.llm.codecs.streamed_reply import EventReader, OriginalStream, StreamedReply

_STATUSES: dict[FinishReason | None, tuple[str, str | None]] = {
    None: ("in_progress", None),
    "stop": ("completed", None),
    "tool_calls": ("completed", None),
    "length": ("incomplete", "max_output_tokens"),
    "content_filter": ("incomplete", "content_filter"),
}
"""The status, and the reason for an incomplete reply."""

_TEXT_EVENTS = ("response.output_text.delta", "response.output_text.annotation.added")
_ERROR_CODES = {"rate_limit": "rate_limit_exceeded", "quota": "rate_limit_exceeded", "context_length": "invalid_prompt"}


def _build_part_format(id: str) -> PartFormat:
    """Create items; their ids derive from the reply's id."""
    stem = id.removeprefix("resp_")

    def write_message(text: str, old: Any) -> dict[str, Any]:
        before = as_dict(old)
        part = next((p for p in map(as_dict, as_list(before.get("content"))) if p.get("type") == "output_text"), {})
        defaults = {"id": f"msg_{stem}", "type": "message", "role": "assistant", "status": "completed"}
        return {**defaults, **before, "content": [{"annotations": [], **part, "type": "output_text", "text": text}]}

    def write_call(call: ToolCall, old: Any) -> dict[str, Any]:
        called = call.id or f"call_{call.name}"
        defaults = {"id": f"fc_{stem}_{called}", "type": "function_call", "status": "completed"}
        return {**defaults, **as_dict(old), "call_id": called, "name": call.name, "arguments": call.arguments}

    return PartFormat(find_kind, write_message, write_call)


def _is_silent(completion: Completion) -> bool:
    """Return whether the reply ended normally without text: then it contains an empty message."""
    return completion.finish == "stop" and not (completion.text or completion.tool_calls or completion.lacks)


def _write_ending(completion: Completion) -> dict[str, Any]:
    status, reason = _STATUSES[completion.finish]
    return {"status": status, "incomplete_details": {"reason": reason} if reason else None}


def _write_error(error: ErrorChunk) -> dict[str, Any]:
    message = error_replies.write_error("openai", error.kind, error.message)["error"]["message"]
    return {"code": _ERROR_CODES.get(error.kind, "server_error"), "message": message}


class _ResponsesWriter(ReplyWriter):
    def __init__(self, codec: Codec, completion: Completion, request: ModelRequest, original: OriginalStream) -> None:
        super().__init__(codec, completion, request, original)
        self._stem = str(self._base["id"]).removeprefix("resp_")
        self._output: list[dict[str, Any]] = []
        self._open_text: list[str] | None = None
        """The text of the open message, if there is one."""
        self._fields: dict[str, Any] = {}
        """Fields of the provider's own message that is open or comes next."""
        self._text_details: dict[str, list[Any]] = {"annotations": [], "logprobs": []}
        """Extra data about the open text."""
        self._sequence = -1

    def write_start(self) -> Iterator[bytes]:
        yield self._write_event("response.created", response=self._build_response({}))
        yield from self.write_empty()

    def write_text(self, text: str) -> Iterator[bytes]:
        if self._open_text is None:
            self._open_text = []
            yield self._write_item_event("response.output_item.added", item=self._build_message("in_progress", []))
            yield self._write_part_event("response.content_part.added", part=_build_text_part(""))
        self._open_text.append(text)
        yield self._write_part_event("response.output_text.delta", delta=text, logprobs=[])

    def write_call(self, call: ToolCall) -> Iterator[bytes]:
        yield from self._end_text()
        at = len(self._output)
        called = call.id or f"call_{call.name}"
        item = {"id": f"fc_{self._stem}_{at}", "type": "function_call", **self._take_call_fields()}
        item |= {"status": "in_progress", "arguments": "", "call_id": called, "name": call.name}
        yield self._write_item_event("response.output_item.added", item=item)
        for piece in split_pieces(call.arguments):
            yield self._write_item_event("response.function_call_arguments.delta", item_id=item["id"], delta=piece)
        done = {"item_id": item["id"], "arguments": call.arguments}
        yield self._write_item_event("response.function_call_arguments.done", **done)
        yield self._finish_item({**item, "status": "completed", "arguments": call.arguments})

    def write_empty(self) -> Iterator[bytes]:
        yield self._write_event("response.in_progress", response=self._build_response({}))

    def _build_response(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {**self._base, "status": "in_progress", "output": []} | fields

    def write_extra(self, data: Any) -> Iterator[bytes]:
        """Write events of an unchanged item or of the open text, or keep the fields of the next message."""
        # Three kinds of extras arrive here: details of the open text, the start of a message (whose fields the next
        # text reuses), and items that are sent again as a whole. Only the last kind takes a place in the output.
        item: Any = None
        for event in data:
            kind = event["type"]
            if kind in _TEXT_EVENTS:
                yield from self._write_text_event(kind, event)
                continue
            yield from self._end_text()
            if find_kind(event.get("item")) == "text" and kind == "response.output_item.added":
                self._fields = {n: v for n, v in event["item"].items() if n not in ("content", "status")}
                continue
            if item is None and kind != "response.output_item.added":  # a message without text
                item = self._build_message("in_progress", [])
                yield self._write_item_event("response.output_item.added", item=item)
            item = event.get("item", item)
            yield self._write_item_event(kind, **_drop_position(event))
        if item is not None:
            self._output.append(item)
            self._fields = {}

    def _write_text_event(self, kind: str, event: dict[str, Any]) -> Iterator[bytes]:
        if self._open_text is None:
            return
        self._text_details["logprobs"] += as_list(event.get("logprobs"))
        self._text_details["annotations"] += [event["annotation"]] if "annotation" in event else []
        yield self._write_part_event(kind, **_drop_position(event))

    def write_error(self, error: ErrorChunk) -> Iterator[bytes]:
        if self._sequence < 0:
            yield from self.write_start()
        failed = {"status": "failed", "error": _write_error(error), "output": self._output, "usage": None}
        yield self._write_event("response.failed", response=self._build_response(failed))

    def write_end(self) -> Iterator[bytes]:
        if _is_silent(self._completion) and not self._output:
            yield from self.write_text("")
        yield from self._end_text()
        if self._completion.finish is None:
            return
        own = {"model": self._base["model"], "output": None if self._completion.lacks == "message" else self._output}
        ended = {"usage": None, **self._write_usage(), **_write_ending(self._completion), **own}
        response = self._build_response(as_dict(self._original.last) | ended)
        yield self._write_event(f"response.{response['status']}", response=response)

    def _end_text(self) -> Iterator[bytes]:
        if self._open_text is None:
            return
        text, self._open_text = "".join(self._open_text), None
        part, self._text_details = {**_build_text_part(text), **self._text_details}, {"annotations": [], "logprobs": []}
        yield self._write_part_event("response.output_text.done", text=text, logprobs=part["logprobs"])
        yield self._write_part_event("response.content_part.done", part=part)
        yield self._finish_item(self._build_message("completed", [part]))
        self._fields = {}

    def _finish_item(self, item: dict[str, Any]) -> bytes:
        event = self._write_item_event("response.output_item.done", item=item)
        self._output.append(item)
        return event

    def _build_message(self, status: str, content: list[Any]) -> dict[str, Any]:
        defaults = {"id": self._choose_message_id(), "type": "message", "role": "assistant"}
        return {**defaults, **self._fields, "status": status, "content": content}

    def _choose_message_id(self) -> str:
        return as_text(self._fields.get("id")) or f"msg_{self._stem}_{len(self._output)}"

    def _write_part_event(self, name: str, /, **fields: Any) -> bytes:
        """Return an event about the text of the open message."""
        fields |= {"item_id": self._choose_message_id(), "content_index": 0}
        return self._write_item_event(name, **fields)

    def _write_item_event(self, name: str, /, **fields: Any) -> bytes:
        """Return an event about the item that is open or comes next."""
        return self._write_event(name, output_index=len(self._output), **fields)

    def _write_event(self, name: str, /, **fields: Any) -> bytes:
        self._sequence += 1
        return sse.format_event({"type": name, "sequence_number": self._sequence, **fields}, name)


def _drop_position(event: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a provider's event, without its position in the stream and in the output."""
    return {name: value for name, value in event.items() if name not in ("type", "sequence_number", "output_index")}


def _build_text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


class OpenAIResponses(Codec):
    """Responses. Reasoning and other items stay unchanged when a plain reply is changed."""

    name = "openai_responses"
    provider = "openai"
    writer = _ResponsesWriter
    read_request = staticmethod(openai_responses_read.read_request)
    read_conversation = staticmethod(openai_responses_read.read_conversation)
    write_result = staticmethod(openai_responses_read.write_result)

    def read_reply(self, data: Any) -> Completion:
        fields, reply = as_dict(data), StreamedReply()
        reply.model = as_text(fields.get("model"))
        if fields.get("error"):
            reply.set_error(error_replies.read_error(fields))
        else:
            read_response(fields, reply)
        return reply.build_completion()

    def create_event_reader(self) -> EventReader:
        return ResponseEvents().read_event

    def find_head(self, event: dict[str, Any]) -> dict[str, Any]:
        return as_dict(event.get("response"))

    def write_usage(self, usage: Usage) -> dict[str, Any]:
        read, wrote = usage.input_tokens, usage.output_tokens
        cache = dict(zip(CACHE, (usage.cached_input, usage.cache_written), strict=True))
        counts = {"input_tokens": read, "input_tokens_details": cache, "output_tokens": wrote}
        return {"usage": {**counts, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": read + wrote}}

    def build_empty(self, completion: Completion, request: ModelRequest) -> dict[str, Any]:
        return {
            "id": f"resp_{derive_id(completion, request)}",
            "object": "response",
            "created_at": CREATED,
            "status": "in_progress",
            **dict.fromkeys(("error", "incomplete_details", "instructions")),
            "max_output_tokens": request.max_tokens,
            "metadata": {},
            "model": request.model,
            "output": [],
            "parallel_tool_calls": True,
            "previous_response_id": None,
            "temperature": 1.0 if request.temperature is None else request.temperature,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": None,
        } | request.echo

    def write_content(self, out: dict[str, Any], before: Completion, after: Completion, copies: int) -> None:
        if after.finish != before.finish:
            out |= _write_ending(after)
        part_format = _build_part_format(out["id"])
        items = edit_parts(as_list(out.get("output")), before, after, part_format)
        if _is_silent(after) and not items:
            items = [part_format.text("", None)]
        out["output"] = {"": items, "choices": [], "message": None}[after.lacks]

    def write_body(self, completion: Completion, request: ModelRequest, original: Any = None) -> bytes:
        """Return the plain reply; an error is part of a reply whose status is `failed`."""
        out = self.write_reply(completion, request, as_dict(original))
        for delta in completion.deltas:
            if isinstance(delta, ErrorChunk):
                out |= {"status": "failed", "error": _write_error(delta), "output": [], "usage": None}
        return dump_json(out)


OPENAI_RESPONSES = OpenAIResponses()
