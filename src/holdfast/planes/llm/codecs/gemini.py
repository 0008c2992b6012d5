"""Google's generateContent and streamGenerateContent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from holdfast.model.completion import Completion, FinishReason, ToolCall, Usage
from holdfast.planes.llm.codecs import error_replies, gemini_request, sse
from holdfast.planes.llm.codecs.codec import Codec, PartFormat, PartKind, ReplyWriter, derive_id, edit_parts
from holdfast.planes.llm.codecs.loose import as_count, as_dict, as_list, as_raw_object, as_text, read_arguments
from holdfast.planes.llm.codecs.request import ModelRequest
from holdfast.planes.llm.codecs.sse import StreamFrame, frame_as_array
from holdfast.planes.llm.codecs.streamed_reply import NOTHING, EventReader, OriginalStream, StreamedReply

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


def _read_object(data: dict[str, Any], reply: StreamedReply) -> None:
    """Read one object: a complete reply, or an event of a stream."""
    if data.get("error"):
        return reply.set_error(error_replies.read_error(data))
    reply.model = reply.model or as_text(data.get("modelVersion"))
    candidates = as_list(data.get("candidates"))
    candidate = as_dict(candidates[0]) if candidates else {}
    for part in as_list(as_dict(candidate.get("content")).get("parts")):
        kind = _find_kind(part)
        if kind == "text":
            reply.add_text(as_text(part.get("text")))
        elif kind == "call":
            call = _read_call(as_dict(part["functionCall"]))
            key = f"{reply.count}"
            reply.add_call(key, call.id, call.name, call.arguments)
            reply.add_call_fields(key, {name: value for name, value in part.items() if name != "functionCall"})
        _keep_part(kind, as_dict(part), reply)
    _read_other_candidates(candidates[1:], reply)
    finish = as_text(candidate.get("finishReason"))
    if finish in _FILTERED or as_dict(data.get("promptFeedback")).get("blockReason"):
        reply.set_finish("content_filter")
    elif finish:
        reply.set_finish("length" if finish == "MAX_TOKENS" else "tool_calls" if reply.has_calls else "stop")
    if used := as_dict(data.get("usageMetadata")):
        read = [as_count(used.get(key)) for key in ("promptTokenCount", "toolUsePromptTokenCount")]
        wrote = [as_count(used.get(key)) for key in ("candidatesTokenCount", "thoughtsTokenCount")]
        reply.set_usage(Usage(sum(read), sum(wrote), as_count(used.get(_CACHED))))
    return None


def _read_other_candidates(candidates: list[Any], reply: StreamedReply) -> None:
    """Read the calls of further candidates, which are never split."""
    for candidate in map(as_dict, candidates):
        for part in as_list(as_dict(candidate.get("content")).get("parts")):
            if _find_kind(part) == "call":
                call = _read_call(as_dict(part["functionCall"]))
                reply.add_other_call(reply.others, call.id, call.name, call.arguments)


def _find_kind(part: Any) -> PartKind:
    fields = as_dict(part)
    if "functionCall" in fields:
        return "call"
    return "text" if "text" in fields and not fields.get("thought") else "other"


def _read_call(call: dict[str, Any]) -> ToolCall:
    return ToolCall(as_text(call.get("id")), as_text(call.get("name")), read_arguments(call.get("args")))


def _build_part(call: ToolCall, old: Any) -> dict[str, Any]:
    id = {"id": call.id} if call.id else {}
    before = as_dict(old)
    function = {**as_dict(before.get("functionCall")), **id, "name": call.name, "args": as_raw_object(call.arguments)}
    return {**before, "functionCall": function}


_PARTS = PartFormat(_find_kind, lambda text, old: {**as_dict(old), "text": text}, _build_part)


def _copy_candidates(candidates: list[Any], copies: int) -> list[Any]:
    """Return each candidate as often as the request asks for one; only for replies written by Holdfast."""
    return [{**candidate, "index": n} for candidate in candidates for n in range(copies)]


def _drop_broken_calls(completion: Completion) -> tuple[Completion, str]:
    """Return the reply without the calls that the format cannot carry, and these calls as text."""
    broken = [call for call in completion.tool_calls if as_raw_object(call.arguments) is None]
    sound = tuple([delta for delta in completion.deltas if delta not in broken])
    text = "; ".join([f"{call.name}({call.arguments})" for call in broken])
    return replace(completion, deltas=sound), text


def _write_ending(completion: Completion, broken: str) -> dict[str, Any]:
    if broken:
        return {"finishReason": _MALFORMED, "finishMessage": f"Malformed function call: {broken}"}
    return {"finishReason": _WIRE[completion.finish]} if completion.finish else {}


def _read_event(data: dict[str, Any], reply: StreamedReply) -> None:
    candidates = as_list(data.get("candidates"))
    if data.get("candidates") == []:
        reply.add_empty()
    # With several candidates, an event may be about another than the first. Its text is not read, or two answers would
    # be mixed; its usage and its errors are, because they belong to the whole reply.
    of_another = bool(candidates and as_dict(candidates[0]).get("index"))
    if of_another:
        _read_other_candidates(candidates, reply)
    _read_object({**data, "candidates": []} if of_another else data, reply)
    if data.get("usageMetadata"):
        reply.last = data
    if candidates:
        own = {} if of_another else as_dict(candidates[0])
        more = {name: value for name, value in own.items() if name not in _KNOWN}
        if more:
            reply.add_extra(", ".join(more), [{**_build_text_candidate(_NOTHING), **more}])
        for other in candidates if of_another else candidates[1:]:
            reply.add_extra("further candidates", [other])


def _keep_part(kind: PartKind, part: dict[str, Any], reply: StreamedReply) -> None:
    """Keep a thought or the signature of a text: Google's models require them in the next request."""
    more = {name: value for name, value in part.items() if name != "text"}
    if kind == "other":
        reply.add_extra("thoughts" if part.get("thought") else ", ".join(part), [_build_text_candidate(part)])
    elif kind == "text" and more:
        reply.add_extra(", ".join(more), [_build_text_candidate({"text": "", **more})])


def _build_text_candidate(part: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"parts": [part], "role": "model"}, "index": 0}


class _GeminiWriter(ReplyWriter):
    def __init__(self, codec: Codec, completion: Completion, request: ModelRequest, original: OriginalStream) -> None:
        super().__init__(codec, completion, request, original)
        self._completion, self._broken = _drop_broken_calls(completion)
        self._base.pop("usageMetadata", None)
        self._sent = False

    def write_text(self, text: str) -> Iterator[bytes]:
        yield self._write_candidate([{"text": text}])

    def write_call(self, call: ToolCall) -> Iterator[bytes]:
        extra = self._take_call_fields()
        if as_raw_object(call.arguments) is not None:
            yield self._write_candidate([_build_part(call, extra)])

    def write_empty(self) -> Iterator[bytes]:
        yield self._write_event([])

    def write_extra(self, data: Any) -> Iterator[bytes]:
        yield self._write_event(data)

    def write_end(self) -> Iterator[bytes]:
        usage = self._write_usage()
        ending = _write_ending(self._completion, self._broken)
        if self._completion.lacks == "choices":
            yield self._write_event([], **usage)
        elif self._completion.lacks or self._completion.finish == "content_filter":
            yield self._write_event(_copy_candidates([ending], self._copies), **usage)
        elif ending or usage or not self._sent:
            yield self._write_candidate([{"text": ""}], ending, **usage)

    def _write_candidate(self, parts: list[Any], ending: dict[str, Any] | None = None, **more: Any) -> bytes:
        candidate = {"content": {"parts": parts, "role": "model"}, **(ending or {})}
        return self._write_event(_copy_candidates([candidate], self._copies), **more)

    def _write_event(self, candidates: list[Any], **more: Any) -> bytes:
        self._sent = True
        return self._format({**self._base, "candidates": candidates, **more})

    def _format(self, data: Any) -> bytes:
        return sse.format_event(data, end=_END)


class Gemini(Codec):
    """generateContent. A stream is server-sent events (`alt=sse`), otherwise one JSON array.

    The format cannot carry a call whose arguments are not an object. In that case Google sends no call and finishes
    with MALFORMED_FUNCTION_CALL; this codec does the same.
    """

    name = "gemini"
    provider = "google"
    writer = _GeminiWriter
    model_field = "modelVersion"
    read_request = staticmethod(gemini_request.read_request)
    read_conversation = staticmethod(gemini_request.read_conversation)
    write_result = staticmethod(gemini_request.write_result)

    def __init__(self, *, array: bool = False) -> None:
        self._array = array
        if array:
            self.stream_type, self.split_stream = "application/json", sse.read_elements

    def read_reply(self, data: Any) -> Completion:
        reply, fields = StreamedReply(), as_dict(data)
        for part in map(as_dict, as_list(data)):  # a complete stream, as an array
            _read_object(part, reply)
        _read_object(fields, reply)
        if fields and not fields.get("error"):
            candidates = as_list(fields.get("candidates"))
            reply.lacks = "choices" if not candidates else "" if "content" in as_dict(candidates[0]) else "message"
        return reply.build_completion()

    def create_event_reader(self) -> EventReader:
        return _read_event

    def write_usage(self, usage: Usage) -> dict[str, Any]:
        read, wrote = usage.input_tokens, usage.output_tokens
        counts = {"promptTokenCount": read, "candidatesTokenCount": wrote, "totalTokenCount": read + wrote}
        return {"usageMetadata": {**counts, **({_CACHED: usage.cached_input} if usage.cached_input else {})}}

    def build_empty(self, completion: Completion, request: ModelRequest) -> dict[str, Any]:
        return {"candidates": [], "modelVersion": request.model, "responseId": derive_id(completion, request)}

    def write_content(self, out: dict[str, Any], before: Completion, after: Completion, copies: int) -> None:
        candidates = as_list(out.get("candidates"))
        first = {"index": 0, **as_dict((candidates or [{}])[0])}
        sound, broken = _drop_broken_calls(after)
        parts = edit_parts(as_list(as_dict(first.get("content")).get("parts")), before, sound, _PARTS)
        first["content"] = {"role": "model", **as_dict(first.get("content")), "parts": parts or [_NOTHING]}
        if after.lacks or (not parts and after.finish == "content_filter"):
            del first["content"]
        if after.finish != before.finish or broken:
            first |= _write_ending(after, broken)
        copied = _copy_candidates([first], copies) if copies > 1 else [first]
        out["candidates"] = [] if after.lacks == "choices" else [*copied, *candidates[1:]]

    def write_frames(
        self, completion: Completion, request: ModelRequest, original: OriginalStream = NOTHING
    ) -> Iterator[StreamFrame]:
        frames = super().write_frames(completion, request, original)
        return frame_as_array(frames) if self._array else frames

    def keep_deliverable(self, completion: Completion) -> Completion:
        return _drop_broken_calls(completion)[0]


GEMINI = Gemini()
GEMINI_ARRAY = Gemini(array=True)
