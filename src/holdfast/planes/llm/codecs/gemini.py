"""Google's generateContent and streamGenerateContent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from holdfast.model.completion import Completion, ErrorChunk, Finish, FinishReason, ToolCall, Usage
from holdfast.planes.llm.codecs import gemini_request, refusals, sse
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.loose import as_object, count, items, json_text, obj, word
from holdfast.planes.llm.codecs.reply_writer import PartFormat, PartKind, ReplyWriter, edited, mark
from holdfast.planes.llm.codecs.request import ModelRequest
from holdfast.planes.llm.codecs.sse import Elements, StreamFrame, as_array
from holdfast.planes.llm.codecs.streamed_reply import NOTHING, FormatReader, OriginalStream, StreamedReply

_FILTERED = ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY")
_WIRE: dict[FinishReason, str] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
}
_KNOWN = ("content", "finishReason", "finishMessage", "index")
_NOTHING = {"text": ""}
_CACHED = "cachedContentTokenCount"
_MALFORMED = "MALFORMED_FUNCTION_CALL"
_END = b"\r\n"
"""Google's own line ending."""


class Gemini(Codec):
    """generateContent. A stream is server-sent events (`alt=sse`), otherwise one JSON array.

    The format cannot carry a call whose arguments are not an object. In that case Google sends no call and finishes
    with MALFORMED_FUNCTION_CALL; this codec does the same.
    """

    name = "gemini"
    provider = "google"
    read_request = staticmethod(gemini_request.read_request)
    replace_results = staticmethod(gemini_request.replace_results)

    def __init__(self, *, array: bool = False) -> None:
        self._array = array
        self.stream_type = "application/json" if array else sse.TYPE

    def reply(self, data: Any) -> Completion:
        got, fields = StreamedReply(), obj(data)
        for part in map(obj, items(data)):  # a complete stream, as an array
            _take(part, got)
        _take(fields, got)
        if fields and not fields.get("error"):
            candidates = items(fields.get("candidates"))
            got.lacks = "choices" if not candidates else "" if "content" in obj(candidates[0]) else "message"
        return got.completion()

    def reader(self, *, keep: bool = False) -> FormatReader:
        return FormatReader(Elements() if self._array else sse.DataEvents(), _take_event, keep=keep)

    def written(self, completion: Completion, request: ModelRequest, like: dict[str, Any]) -> dict[str, Any]:
        was, out = self.reply(like), {**_fresh(completion, request), **like}
        if completion.model:
            out["modelVersion"] = completion.model
        if completion.usage and completion.usage != was.usage:
            out["usageMetadata"] = _usage_of(completion.usage)
        known = _candidates(items(like.get("candidates")), was, completion)
        out["candidates"] = known if like else _copied(known, request.copies)
        return out

    def writer(self, completion: Completion, request: ModelRequest, like: OriginalStream) -> ReplyWriter:
        return _GeminiWriter(completion, request, like)

    def frames(
        self, completion: Completion, request: ModelRequest, like: OriginalStream = NOTHING
    ) -> Iterator[StreamFrame]:
        frames = super().frames(completion, request, like)
        return as_array(frames) if self._array else frames

    def delivered(self, completion: Completion) -> Completion:
        return _sound(completion)[0]


def _take(data: dict[str, Any], got: StreamedReply) -> None:
    """Reads one object: a complete reply, or an event of a stream."""
    if data.get("error"):
        return got.trouble(refusals.trouble(data))
    got.model = got.model or word(data.get("modelVersion"))
    candidates = items(data.get("candidates"))
    candidate = obj(candidates[0]) if candidates else {}
    for part in items(obj(candidate.get("content")).get("parts")):
        kind = _kind(part)
        if kind == "text":
            got.text(word(part.get("text")))
        elif kind == "call":
            call = _call(obj(part["functionCall"]))
            key = f"{got.count}"
            got.call(key, call.id, call.name, call.arguments)
            got.beside(key, {name: value for name, value in part.items() if name != "functionCall"})
        if got.keep:
            _keep_part(kind, obj(part), got)
    _take_others(candidates[1:], got)
    for finish in _finish(data, candidate, got.calls):
        got.finish(finish.reason)
    if used := obj(data.get("usageMetadata")):
        read = [count(used.get(key)) for key in ("promptTokenCount", "toolUsePromptTokenCount")]
        wrote = [count(used.get(key)) for key in ("candidatesTokenCount", "thoughtsTokenCount")]
        got.usage(Usage(sum(read), sum(wrote), count(used.get(_CACHED))))
    return None


def _take_others(candidates: list[Any], got: StreamedReply) -> None:
    """Reads the calls of further candidates, which are never split."""
    for candidate in map(obj, candidates):
        for part in items(obj(candidate.get("content")).get("parts")):
            if _kind(part) == "call":
                call = _call(obj(part["functionCall"]))
                got.other_call(got.others, call.id, call.name, call.arguments)


def _kind(part: Any) -> PartKind:
    fields = obj(part)
    if "functionCall" in fields:
        return "call"
    return "text" if "text" in fields and not fields.get("thought") else "other"


def _call(call: dict[str, Any]) -> ToolCall:
    arguments = call.get("args")
    return ToolCall(word(call.get("id")), word(call.get("name")), "{}" if arguments is None else json_text(arguments))


def _part(call: ToolCall, old: Any) -> dict[str, Any]:
    id = {"id": call.id} if call.id else {}
    before = obj(old)
    function = {**obj(before.get("functionCall")), **id, "name": call.name, "args": as_object(call.arguments)}
    return {**before, "functionCall": function}


_PARTS = PartFormat(_kind, lambda text, old: {**obj(old), "text": text}, _part)


def _finish(data: dict[str, Any], candidate: dict[str, Any], called: bool) -> tuple[Finish, ...]:
    finish = word(candidate.get("finishReason"))
    if finish in _FILTERED or obj(data.get("promptFeedback")).get("blockReason"):
        return (Finish("content_filter"),)
    if finish == "MAX_TOKENS":
        return (Finish("length"),)
    return (Finish("tool_calls" if called else "stop"),) if finish else ()


def _usage_of(usage: Usage) -> dict[str, int]:
    read, wrote = usage.input_tokens, usage.output_tokens
    counts = {"promptTokenCount": read, "candidatesTokenCount": wrote, "totalTokenCount": read + wrote}
    return {**counts, _CACHED: usage.cached_input} if usage.cached_input else counts


def _fresh(completion: Completion, request: ModelRequest) -> dict[str, Any]:
    """A reply written by Holdfast, without its candidates."""
    usage = {"usageMetadata": _usage_of(completion.usage)} if completion.usage else {}
    id = mark(completion, request)
    return {"candidates": [], **usage, "modelVersion": completion.model or request.model, "responseId": id}


def _candidates(candidates: list[Any], was: Completion, now: Completion) -> list[Any]:
    if now.lacks == "choices":
        return []
    first = {"index": 0, **(obj(candidates[0]) if candidates else {})}
    now, broken = _sound(now)
    parts = edited(items(obj(first.get("content")).get("parts")), was, now, _PARTS)
    first["content"] = {"role": "model", **obj(first.get("content")), "parts": parts or [{"text": ""}]}
    if now.lacks or (not parts and now.finish == "content_filter"):
        del first["content"]
    if now.finish != was.finish or broken:
        first |= _ending(now, broken)
    return [first, *candidates[1:]]


def _copied(candidates: list[Any], copies: int) -> list[Any]:
    """The number of candidates of a reply written by Holdfast; all are equal."""
    return [{**one, "index": n} for one in candidates for n in range(copies)]


def _sound(completion: Completion) -> tuple[Completion, str]:
    """The reply without the calls that the format cannot carry, and these calls as text."""
    broken = [call for call in completion.tool_calls if as_object(call.arguments) is None]
    sound = tuple([delta for delta in completion.deltas if delta not in broken])
    text = "; ".join([f"{call.name}({call.arguments})" for call in broken])
    return replace(completion, deltas=sound), text


def _ending(completion: Completion, broken: str) -> dict[str, Any]:
    if broken:
        return {"finishReason": _MALFORMED, "finishMessage": f"Malformed function call: {broken}"}
    return {"finishReason": _WIRE[completion.finish]} if completion.finish else {}


def _take_event(data: dict[str, Any], got: StreamedReply) -> None:
    candidates = items(data.get("candidates"))
    if data.get("candidates") == []:
        got.hollow()
    of_another = bool(candidates and obj(candidates[0]).get("index"))
    if of_another:
        _take_others(candidates, got)
    _take({**data, "candidates": []} if of_another else data, got)
    if data.get("usageMetadata"):
        got.last = data
    if got.keep and candidates:
        own = {} if of_another else obj(candidates[0])
        more = {name: value for name, value in own.items() if name not in _KNOWN}
        if more:
            got.aside(", ".join(more), [{**_text_part(_NOTHING), **more}])
        for other in candidates if of_another else candidates[1:]:
            got.aside("further candidates", [other])


def _keep_part(kind: PartKind, part: dict[str, Any], got: StreamedReply) -> None:
    """A thought, and the signature of a text: Google's models require them in the next request."""
    more = {name: value for name, value in part.items() if name != "text"}
    if kind == "other":
        got.aside("thoughts" if part.get("thought") else ", ".join(part), [_text_part(part)])
    elif kind == "text" and more:
        got.aside(", ".join(more), [_text_part({"text": "", **more})])


def _text_part(part: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"parts": [part], "role": "model"}, "index": 0}


class _GeminiWriter(ReplyWriter):
    def __init__(self, completion: Completion, request: ModelRequest, like: OriginalStream) -> None:
        sound, self._broken = _sound(completion)
        super().__init__(sound, like)
        self._base = {**_fresh(completion, request), **obj(like.first)}
        self._base.pop("usageMetadata", None)
        if completion.model:
            self._base["modelVersion"] = completion.model
        self._sent = False
        self._copies = 1 if obj(like.first) else request.copies

    def text(self, text: str) -> Iterator[bytes]:
        yield self._candidate([{"text": text}])

    def call(self, call: ToolCall) -> Iterator[bytes]:
        extra = self._beside()
        if as_object(call.arguments) is not None:
            yield self._candidate([_part(call, extra)])

    def hollow(self) -> Iterator[bytes]:
        yield self._event([])

    def aside(self, data: Any) -> Iterator[bytes]:
        yield self._event(data)

    def trouble(self, trouble: ErrorChunk) -> Iterator[bytes]:
        yield sse.event(refusals.error("google", trouble.kind, trouble.message), end=_END)

    def close(self) -> Iterator[bytes]:
        used = self._now.usage
        own_usage = obj(self._like.last).get("usageMetadata") if used == self._like.was.usage else None
        usage = {"usageMetadata": own_usage or _usage_of(used)} if used else {}
        ending = _ending(self._now, self._broken)
        if self._now.lacks == "choices":
            yield self._event([], **usage)
        elif self._now.lacks or self._now.finish == "content_filter":
            yield self._event(_copied([ending], self._copies), **usage)
        elif ending or usage or not self._sent:
            yield self._candidate([{"text": ""}], ending, **usage)

    def _candidate(self, parts: list[Any], ending: dict[str, Any] | None = None, **more: Any) -> bytes:
        candidate = {"content": {"parts": parts, "role": "model"}, **(ending or {})}
        return self._event(_copied([candidate], self._copies), **more)

    def _event(self, candidates: list[Any], **more: Any) -> bytes:
        self._sent = True
        return sse.event({**self._base, "candidates": candidates, **more}, end=_END)


GEMINI = Gemini()
GEMINI_ARRAY = Gemini(array=True)
