"""Replies of OpenAI's Responses, read: items, their end, what they used, and the events of a stream."""

from __future__ import annotations

from typing import Any

from holdfast.model.completion import Finish, ToolCall, Usage
from holdfast.planes.llm.codecs import refusals
from holdfast.planes.llm.codecs.loose import count, items, json_text, obj, word
from holdfast.planes.llm.codecs.reply_writer import PartKind
from holdfast.planes.llm.codecs.streamed_reply import StreamedReply

CACHE = ("cached_tokens", "cache_write_tokens")
_KNOWN_OF_CALL = ("type", "status", "call_id", "name", "arguments")


def kind_of(item: Any) -> PartKind:
    kind = obj(item).get("type")
    if kind == "message":
        return "text"
    return "call" if kind == "function_call" else "other"


def text_of(item: dict[str, Any]) -> str:
    return "".join(
        [word(p.get("text")) for p in map(obj, items(item.get("content"))) if p.get("type") == "output_text"]
    )


def call_of(item: dict[str, Any]) -> ToolCall:
    arguments = item.get("arguments")
    text = "" if arguments is None else json_text(arguments)
    return ToolCall(word(item.get("call_id")), word(item.get("name")), text)


def custom_calls(output: list[Any]) -> tuple[ToolCall, ...]:
    """The calls whose input is a bare text, which faults leave as they are."""
    found = [obj(item) for item in output if obj(item).get("type") == "custom_tool_call"]
    return tuple([ToolCall(word(i.get("call_id")), word(i.get("name")), word(i.get("input"))) for i in found])


def finish_of(found: dict[str, Any], called: bool) -> tuple[Finish, ...]:
    status = found.get("status")
    if status == "completed":
        return (Finish("tool_calls" if called else "stop"),)
    if status != "incomplete":
        return ()
    filtered = obj(found.get("incomplete_details")).get("reason") == "content_filter"
    return (Finish("content_filter" if filtered else "length"),)


def usage_of(found: dict[str, Any]) -> tuple[Usage, ...]:
    used = obj(found.get("usage"))
    cache = [count(obj(used.get("input_tokens_details")).get(key)) for key in CACHE]
    return (Usage(count(used.get("input_tokens")), count(used.get("output_tokens")), *cache),) if used else ()


class ResponseEvents:
    """What the events of a stream say."""

    def __init__(self) -> None:
        self._open: dict[int, list[Any]] = {}
        """Events of items that are kept as they came, by the place of the item in the output."""

    def take(self, event: dict[str, Any], got: StreamedReply) -> None:
        """One event of a stream."""
        at = count(event.get("output_index"))
        match event.get("type"):
            case "response.created":
                got.model = word(obj(event.get("response")).get("model"))
            case "response.output_text.delta":
                got.text(word(event.get("delta")))
            case "response.output_item.added" | "response.output_item.done":
                if kind_of(item := obj(event.get("item"))) == "call":
                    _take_call(at, item, got)
                elif event["type"].endswith(".done"):
                    _take_custom(at, item, got)
            case "response.function_call_arguments.delta":
                got.more(at, word(event.get("delta")))
            case "response.completed" | "response.incomplete":
                _take_end(obj(event.get("response")), got)
            case "response.failed":
                got.trouble(refusals.trouble(obj(event.get("response"))))
            case "error":
                got.trouble(refusals.trouble(event))
        if got.keep:
            self._keep(at, event, got)

    def _keep(self, at: int, event: dict[str, Any], got: StreamedReply) -> None:
        """What an event says that the neutral form does not know."""
        kind, item = word(event.get("type")), obj(event.get("item"))
        if kind == "response.output_item.added":
            if kind_of(item) == "other":
                self._open[at] = []
                got.aside(word(item.get("type")), self._open[at])
            elif kind_of(item) == "text":
                got.aside("", [event])
        elif kind == "response.content_part.added" and obj(event.get("part")).get("type") != "output_text":
            if at not in self._open:
                self._open[at] = []
                got.aside(word(obj(event.get("part")).get("type")), self._open[at])
        elif kind == "response.output_text.delta" and event.get("logprobs"):
            got.aside("logprobs", [{**event, "delta": ""}], of_text=True)
        elif kind == "response.output_text.annotation.added":
            got.aside("annotations", [event], of_text=True)
        if kind and at in self._open and "output_index" in event:
            self._open[at].append(event)


def _take_call(at: int, item: dict[str, Any], got: StreamedReply) -> None:
    call = call_of(item)
    got.call(at, call.id, call.name, otherwise=call.arguments)
    got.beside(at, {name: value for name, value in item.items() if name not in _KNOWN_OF_CALL})


def _take_custom(at: int, item: Any, got: StreamedReply) -> None:
    for call in custom_calls([item]):
        got.other_call(at, call.id, call.name, call.arguments)


def _take_end(response: dict[str, Any], got: StreamedReply) -> None:
    got.model = got.model or word(response.get("model"))
    got.last = response
    if got.empty and not got.others:  # some servers send all of it only here
        for at, item in enumerate(items(response.get("output"))):
            if kind_of(item) == "call":
                _take_call(at, item, got)
            elif kind_of(item) == "text":
                got.text(text_of(item))
            _take_custom(at, item, got)
    for finish in finish_of(response, got.calls):
        got.finish(finish.reason)
    for usage in usage_of(response):
        got.usage(usage)
