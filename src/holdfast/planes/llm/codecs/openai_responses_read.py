"""Reads OpenAI's Responses: requests, replies and stream events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.model.completion import Finish, ToolCall, Usage
from holdfast.planes.llm.codecs import refusals
from holdfast.planes.llm.codecs.loose import count, items, json_text, number, obj, text_in, whole, with_text_in, word
from holdfast.planes.llm.codecs.openai_chat_request import CUSTOM, service_tier, strict_schema
from holdfast.planes.llm.codecs.reply_writer import PartKind
from holdfast.planes.llm.codecs.request import ChatMessage, Conversation, ModelRequest, Role, ToolDeclared
from holdfast.planes.llm.codecs.streamed_reply import StreamedReply

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "assistant": "assistant"}
_RESULTS = ("function_call_output", "custom_tool_call_output")
_ECHOED = (
    "background", "instructions", "max_tool_calls", "metadata", "parallel_tool_calls", "previous_response_id", "prompt",
    "prompt_cache_key", "prompt_cache_retention", "reasoning", "safety_identifier", "store", "tool_choice", "tools",
    "top_p", "truncation", "user",
)  # fmt: skip


def read_request(path: str, body: Mapping[str, Any]) -> ModelRequest:
    """Reads a request. Server-side state (`previous_response_id`, `conversation`) is not included."""
    choice, form = body.get("tool_choice"), obj(obj(body.get("text")).get("format"))
    logprobs = "message.output_text.logprobs" in items(body.get("include")) or bool(whole(body.get("top_logprobs")))
    return ModelRequest(
        word(body.get("model")),
        _messages(body),
        _declared(body),
        body.get("stream") is True,
        max_tokens=whole(body.get("max_output_tokens")),
        temperature=number(body.get("temperature")),
        tool_choice=choice if isinstance(choice, str) else word(obj(choice).get("name")) or None,
        json_reply=word(form.get("type")).startswith("json"),
        goes_on=bool(body.get("previous_response_id") or body.get("conversation")),
        schema=strict_schema(form),
        unscriptable=("logprobs",) if logprobs else (),
        echo=service_tier(word(body.get("service_tier"))) | _echo(body),
    )


def _echo(body: Mapping[str, Any]) -> dict[str, Any]:
    echoed = {name: body[name] for name in _ECHOED if body.get(name) is not None}
    if conversation := body.get("conversation"):
        echoed["conversation"] = conversation if isinstance(conversation, dict) else {"id": conversation}
    return echoed | {"text": {"format": {"type": "text"}, **obj(body.get("text"))}}


def replace_results(body: Mapping[str, Any], changed: Mapping[str, str], failed: frozenset[str]) -> dict[str, Any]:
    """The request with other texts in its tool results. This format cannot mark a failed tool."""
    if not isinstance(body.get("input"), list):
        return dict(body)
    keys = iter([result.key for message in _messages(body) for result in message.results])
    return {**body, "input": [_changed(item, keys, changed) for item in body["input"]]}


def _messages(body: Mapping[str, Any]) -> tuple[ChatMessage, ...]:
    conversation = Conversation()
    if instructions := word(body.get("instructions")):
        conversation.say("system", instructions)
    input = body.get("input")
    if isinstance(input, str):
        conversation.say("user", input)
    for item in items(input):
        _take(obj(item), conversation)
    return conversation.messages()


def _take(item: dict[str, Any], conversation: Conversation) -> None:
    kind = word(item.get("type"))
    id, name = word(item.get("call_id")), word(item.get("name"))
    if kind in _RESULTS:
        conversation.result(id, name, text_in(item.get("output")))
    elif kind == "function_call":
        conversation.call(id, name, json_text(item.get("arguments") or "{}"))
    elif kind == "custom_tool_call":
        conversation.call(id, name, word(item.get("input")))
    elif kind in ("message", "") and "role" in item:
        conversation.say(_ROLES.get(word(item.get("role")), "user"), text_in(item.get("content")))


def _changed(item: Any, keys: Iterator[str], changed: Mapping[str, str]) -> Any:
    if word(obj(item).get("type")) not in _RESULTS:
        return item
    key = next(keys)
    return {**item, "output": with_text_in(item.get("output"), changed[key], "input_text")} if key in changed else item


def _declared(body: Mapping[str, Any]) -> tuple[ToolDeclared, ...]:
    return tuple(
        [
            ToolDeclared(
                name,
                word(tool.get("description")),
                obj(tool.get("parameters")),
                CUSTOM if tool["type"] == "custom" else "",
            )
            for tool in map(obj, items(body.get("tools")))
            if tool.get("type") in ("function", "custom") and (name := word(tool.get("name")))
        ]
    )


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
    """The calls with plain-text input, which faults do not change."""
    known = [obj(item) for item in output if obj(item).get("type") == "custom_tool_call"]
    return tuple([ToolCall(word(i.get("call_id")), word(i.get("name")), word(i.get("input"))) for i in known])


def finish_of(response: dict[str, Any], called: bool) -> tuple[Finish, ...]:
    status = response.get("status")
    if status == "completed":
        return (Finish("tool_calls" if called else "stop"),)
    if status != "incomplete":
        return ()
    filtered = obj(response.get("incomplete_details")).get("reason") == "content_filter"
    return (Finish("content_filter" if filtered else "length"),)


def usage_of(response: dict[str, Any]) -> tuple[Usage, ...]:
    used = obj(response.get("usage"))
    cache = [count(obj(used.get("input_tokens_details")).get(key)) for key in CACHE]
    return (Usage(count(used.get("input_tokens")), count(used.get("output_tokens")), *cache),) if used else ()


class ResponseEvents:
    """Reads the events of a stream."""

    def __init__(self) -> None:
        self._open: dict[int, list[Any]] = {}
        """Events of items that are kept as they arrived, by the item's position in the output."""

    def take(self, event: dict[str, Any], got: StreamedReply) -> None:
        """Reads one event of a stream."""
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
        """Keeps the parts of an event that the neutral form does not support."""
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
    if got.empty and not got.others:  # some servers send the complete text only here
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
