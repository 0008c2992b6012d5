"""OpenAI's Responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.model.completion import Completion, Delta, Finish, FinishReason, Text, ToolCall, Trouble, Usage
from holdfast.planes.llm import openai_responses_asked, refusals, sse
from holdfast.planes.llm.asked import Asked
from holdfast.planes.llm.codec import Frame, Refusal, StreamReader
from holdfast.planes.llm.editing import Format, Kind, edited
from holdfast.planes.llm.gathering import Gathering
from holdfast.planes.llm.loose import count, dump, items, json_text, obj, word
from holdfast.planes.llm.playing import CREATED, mark, pieces, play
from holdfast.planes.llm.reading import Reading
from holdfast.protocols import Failed

_ENDED: dict[FinishReason | None, tuple[str, str | None]] = {
    None: ("in_progress", None),
    "stop": ("completed", None),
    "tool_calls": ("completed", None),
    "length": ("incomplete", "max_output_tokens"),
    "content_filter": ("incomplete", "content_filter"),
}
"""Status, and why it is incomplete."""

_FAILED = {"rate_limit": "rate_limit_exceeded", "quota": "rate_limit_exceeded", "context_length": "invalid_prompt"}


class OpenAIResponses:
    """Responses. Reasoning and other items stay as they are where a plain reply is changed."""

    name = "openai_responses"
    provider = "openai"
    stream_type = sse.TYPE

    def asked(self, path: str, body: Mapping[str, Any]) -> Asked:
        return openai_responses_asked.asked(body)

    def with_results(self, body: Mapping[str, Any], changed: Mapping[str, str], failed: frozenset[str]) -> Any:
        return openai_responses_asked.with_results(body, changed)

    def reply(self, data: Any) -> Completion:
        found = obj(data)
        if found.get("error"):
            return Completion((refusals.trouble(found),), word(found.get("model")))
        deltas: list[Delta] = []
        for item in items(found.get("output")):
            kind = _kind(item)
            if kind == "call":
                deltas.append(_call(item))
            elif kind == "text" and (text := _text(item)):
                deltas.append(Text(text))
        called = any(isinstance(delta, ToolCall) for delta in deltas)
        return Completion((*deltas, *_finish(found, called), *_usage(found)), word(found.get("model")))

    def reader(self) -> StreamReader:
        return Reading(sse.Events(), _take)

    def body(self, completion: Completion, asked: Asked, like: Any = None) -> bytes:
        reply = obj(like)
        out = dict(reply) if "id" in reply else {**_fresh(completion, asked), **reply}
        was = self.reply(reply)
        if completion.model:
            out["model"] = completion.model
        if completion.usage and completion.usage != was.usage:
            out["usage"] = _usage_of(completion.usage)
        if completion.finish != was.finish:
            out |= _ending(completion)
        out["output"] = edited(items(reply.get("output")), was, completion, _items(out["id"]))
        if _says_nothing(completion) and not out["output"]:
            out["output"] = [_items(out["id"]).text("", None)]
        if completion.lacks:
            out["output"] = [] if completion.lacks == "choices" else None
        for delta in completion.deltas:
            if isinstance(delta, Trouble):
                out |= {"status": "failed", "error": _error(delta), "output": [], "usage": None}
        return dump(out)

    def frames(self, completion: Completion, asked: Asked, like: Any = None) -> Iterator[Frame]:
        return play(completion, _Score(completion, asked, obj(obj(like).get("response"))))

    def refusal(self, failed: Failed) -> Refusal:
        return refusals.refusal("openai", failed)


def _kind(item: Any) -> Kind:
    kind = obj(item).get("type")
    if kind == "message":
        return "text"
    return "call" if kind == "function_call" else "other"


def _text(item: dict[str, Any]) -> str:
    return "".join(
        [word(p.get("text")) for p in map(obj, items(item.get("content"))) if p.get("type") == "output_text"]
    )


def _call(item: dict[str, Any]) -> ToolCall:
    arguments = item.get("arguments")
    text = "" if arguments is None else json_text(arguments)
    return ToolCall(word(item.get("call_id")), word(item.get("name")), text)


def _items(id: str) -> Format:
    """How items are made; their ids follow the reply's."""
    stem = id.removeprefix("resp_")

    def message(text: str, old: Any) -> dict[str, Any]:
        before = obj(old)
        part = next((p for p in map(obj, items(before.get("content"))) if p.get("type") == "output_text"), {})
        made = {"id": f"msg_{stem}", "type": "message", "role": "assistant", "status": "completed"}
        return {**made, **before, "content": [{"annotations": [], **part, "type": "output_text", "text": text}]}

    def call(call: ToolCall, old: Any) -> dict[str, Any]:
        called = call.id or f"call_{call.name}"
        made = {"id": f"fc_{stem}_{called}", "type": "function_call", "status": "completed"}
        return {**made, **obj(old), "call_id": called, "name": call.name, "arguments": call.arguments}

    return Format(_kind, message, call)


def _finish(found: dict[str, Any], called: bool) -> tuple[Finish, ...]:
    status = found.get("status")
    if status == "completed":
        return (Finish("tool_calls" if called else "stop"),)
    if status != "incomplete":
        return ()
    filtered = obj(found.get("incomplete_details")).get("reason") == "content_filter"
    return (Finish("content_filter" if filtered else "length"),)


def _says_nothing(completion: Completion) -> bool:
    """It ended in order without a word: the message is there, and empty."""
    return completion.finish == "stop" and not (completion.text or completion.tool_calls or completion.lacks)


def _ending(completion: Completion) -> dict[str, Any]:
    status, reason = _ENDED[completion.finish]
    return {"status": status, "incomplete_details": {"reason": reason} if reason else None}


def _usage(found: dict[str, Any]) -> tuple[Usage, ...]:
    used = obj(found.get("usage"))
    return (Usage(count(used.get("input_tokens")), count(used.get("output_tokens"))),) if used else ()


def _usage_of(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _error(trouble: Trouble) -> dict[str, Any]:
    said = refusals.error("openai", trouble.kind, trouble.message)["error"]["message"]
    return {"code": _FAILED.get(trouble.kind, "server_error"), "message": said}


def _fresh(completion: Completion, asked: Asked) -> dict[str, Any]:
    """A reply of our own, before it has any output."""
    return {
        "id": f"resp_{mark(completion, asked)}",
        "object": "response",
        "created_at": CREATED,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": asked.max_tokens,
        "metadata": {},
        "model": completion.model or asked.model,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "temperature": 1.0 if asked.temperature is None else asked.temperature,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
    }


def _take(event: dict[str, Any], got: Gathering) -> None:
    """One event of a stream."""
    at = count(event.get("output_index"))
    match event.get("type"):
        case "response.created":
            got.model = word(obj(event.get("response")).get("model"))
        case "response.output_text.delta":
            got.text(word(event.get("delta")))
        case "response.output_item.added" | "response.output_item.done":
            if _kind(item := obj(event.get("item"))) == "call":
                _take_call(at, item, got)
        case "response.function_call_arguments.delta":
            got.more(at, word(event.get("delta")))
        case "response.completed" | "response.incomplete":
            _take_end(obj(event.get("response")), got)
        case "response.failed":
            got.trouble(refusals.trouble(obj(event.get("response"))))
        case "error":
            got.trouble(refusals.trouble(event))


def _take_call(at: int, item: dict[str, Any], got: Gathering) -> None:
    call = _call(item)
    got.call(at, call.id, call.name, otherwise=call.arguments)


def _take_end(response: dict[str, Any], got: Gathering) -> None:
    got.model = got.model or word(response.get("model"))
    if got.empty:  # some servers send all of it only here
        for at, item in enumerate(items(response.get("output"))):
            if _kind(item) == "call":
                _take_call(at, item, got)
            elif _kind(item) == "text":
                got.text(_text(item))
    for finish in _finish(response, got.calls):
        got.finish(finish.reason)
    for usage in _usage(response):
        got.usage(usage.input_tokens, usage.output_tokens)


class _Score:
    def __init__(self, completion: Completion, asked: Asked, like: dict[str, Any]) -> None:
        self._now = completion
        self._response = dict(like) if "id" in like else _fresh(completion, asked)
        if completion.model:
            self._response["model"] = completion.model
        self._stem = str(self._response["id"]).removeprefix("resp_")
        self._output: list[dict[str, Any]] = []
        self._said: list[str] | None = None
        """The text of the message that is open, if one is."""
        self._sequence = -1
        self._opened = False

    def open(self) -> Iterator[bytes]:
        self._opened = True
        started = {**self._response, "status": "in_progress", "output": []}
        yield self._event("response.created", response=started)
        yield self._event("response.in_progress", response=started)

    def text(self, text: str) -> Iterator[bytes]:
        if self._said is None:
            self._said = []
            yield self._event("response.output_item.added", item=self._message("in_progress", []), **self._at())
            yield self._event("response.content_part.added", **self._in_part(), part=_part(""))
        self._said.append(text)
        yield self._event("response.output_text.delta", **self._in_part(), delta=text, logprobs=[])

    def call(self, call: ToolCall) -> Iterator[bytes]:
        yield from self._end_text()
        at = len(self._output)
        called = call.id or f"call_{call.name}"
        item = {"id": f"fc_{self._stem}_{at}", "type": "function_call", "status": "in_progress", "arguments": ""}
        item |= {"call_id": called, "name": call.name}
        yield self._event("response.output_item.added", item=item, **self._at())
        for piece in pieces(call.arguments):
            yield self._event("response.function_call_arguments.delta", item_id=item["id"], **self._at(), delta=piece)
        done = {"item_id": item["id"], "arguments": call.arguments}
        yield self._event("response.function_call_arguments.done", **self._at(), **done)
        yield self._done({**item, "status": "completed", "arguments": call.arguments})

    def hollow(self) -> Iterator[bytes]:
        yield self._event("response.in_progress", response={**self._response, "status": "in_progress", "output": []})

    def trouble(self, trouble: Trouble) -> Iterator[bytes]:
        if not self._opened:
            yield from self.open()
        failed = {**self._response, "status": "failed", "error": _error(trouble), "output": self._output, "usage": None}
        yield self._event("response.failed", response=failed)

    def close(self) -> Iterator[bytes]:
        if _says_nothing(self._now):
            yield from self.text("")
        yield from self._end_text()
        if self._now.finish is None:
            return
        used = self._now.usage
        output = None if self._now.lacks == "message" else self._output
        ended = {**self._response, **_ending(self._now), "output": output, "usage": _usage_of(used) if used else None}
        yield self._event(f"response.{ended['status']}", response=ended)

    def _end_text(self) -> Iterator[bytes]:
        if self._said is None:
            return
        text, self._said = "".join(self._said), None
        yield self._event("response.output_text.done", **self._in_part(), text=text, logprobs=[])
        yield self._event("response.content_part.done", **self._in_part(), part=_part(text))
        yield self._done(self._message("completed", [_part(text)]))

    def _done(self, item: dict[str, Any]) -> bytes:
        event = self._event("response.output_item.done", item=item, **self._at())
        self._output.append(item)
        return event

    def _message(self, status: str, content: list[Any]) -> dict[str, Any]:
        return {"id": self._id(), "type": "message", "status": status, "role": "assistant", "content": content}

    def _id(self) -> str:
        return f"msg_{self._stem}_{len(self._output)}"

    def _at(self) -> dict[str, Any]:
        return {"output_index": len(self._output)}

    def _in_part(self) -> dict[str, Any]:
        return {"item_id": self._id(), "output_index": len(self._output), "content_index": 0}

    def _event(self, name: str, **fields: Any) -> bytes:
        self._sequence += 1
        return sse.event({"type": name, "sequence_number": self._sequence, **fields}, name)


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


OPENAI_RESPONSES = OpenAIResponses()
