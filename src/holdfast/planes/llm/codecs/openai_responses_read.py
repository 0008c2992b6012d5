"""Reads OpenAI's Responses: requests, replies and stream events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.model.completion import Finish, ToolCall, Usage
from holdfast.planes.llm.codecs import refusals
from holdfast.planes.llm.codecs.codec import PartKind
from holdfast.planes.llm.codecs.loose import (
    as_count,
    as_dict,
    as_list,
    as_number,
    as_optional_count,
    as_text,
    read_arguments,
    read_text,
    replace_text,
    to_json_text,
)
from holdfast.planes.llm.codecs.openai_chat_request import CUSTOM, echo_service_tier, read_strict_schema
from holdfast.planes.llm.codecs.request import (
    ChatMessage,
    Conversation,
    ModelRequest,
    Role,
    ToolDeclaration,
    replace_entries,
)
from holdfast.planes.llm.codecs.streamed_reply import StreamedReply

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "assistant": "assistant"}
_RESULTS = ("function_call_output", "custom_tool_call_output")
_ECHOED = (
    "background", "instructions", "max_tool_calls", "metadata", "parallel_tool_calls", "previous_response_id", "prompt",
    "prompt_cache_key", "prompt_cache_retention", "reasoning", "safety_identifier", "store", "tool_choice", "tools",
    "top_p", "truncation", "user",
)  # fmt: skip


def read_request(path: str, body: Mapping[str, Any]) -> ModelRequest:
    """Read a request. Server-side state (`previous_response_id`, `conversation`) is not included."""
    choice, form = body.get("tool_choice"), as_dict(as_dict(body.get("text")).get("format"))
    logprobs = "message.output_text.logprobs" in as_list(body.get("include")) or bool(
        as_optional_count(body.get("top_logprobs"))
    )
    return ModelRequest(
        as_text(body.get("model")),
        _read_messages(body),
        _read_tools(body),
        body.get("stream") is True,
        max_tokens=as_optional_count(body.get("max_output_tokens")),
        temperature=as_number(body.get("temperature")),
        tool_choice=choice if isinstance(choice, str) else as_text(as_dict(choice).get("name")) or None,
        json_reply=as_text(form.get("type")).startswith("json"),
        goes_on=bool(body.get("previous_response_id") or body.get("conversation")),
        schema=read_strict_schema(form),
        unscriptable=("logprobs",) if logprobs else (),
        echo=echo_service_tier(as_text(body.get("service_tier"))) | _build_echo(body),
    )


def _build_echo(body: Mapping[str, Any]) -> dict[str, Any]:
    echoed = {name: body[name] for name in _ECHOED if body.get(name) is not None}
    if conversation := body.get("conversation"):
        echoed["conversation"] = conversation if isinstance(conversation, dict) else {"id": conversation}
    return echoed | {"text": {"format": {"type": "text"}, **as_dict(body.get("text"))}}


def replace_results(body: Mapping[str, Any], changed: Mapping[str, str], failed: frozenset[str]) -> dict[str, Any]:
    """Return the request with other texts in its tool results. This format cannot mark a failed tool."""
    return replace_entries(body, "input", _read_messages, lambda entry, keys: _change_item(entry, keys, changed))


def _read_messages(body: Mapping[str, Any]) -> tuple[ChatMessage, ...]:
    conversation = Conversation()
    if instructions := as_text(body.get("instructions")):
        conversation.add_message("system", instructions)
    input = body.get("input")
    if isinstance(input, str):
        conversation.add_message("user", input)
    for item in as_list(input):
        _read_item(as_dict(item), conversation)
    return conversation.build_messages()


def _read_item(item: dict[str, Any], conversation: Conversation) -> None:
    kind = as_text(item.get("type"))
    id, name = as_text(item.get("call_id")), as_text(item.get("name"))
    if kind in _RESULTS:
        conversation.add_result(id, name, read_text(item.get("output")))
    elif kind == "function_call":
        conversation.add_call(id, name, to_json_text(item.get("arguments") or "{}"))
    elif kind == "custom_tool_call":
        conversation.add_call(id, name, as_text(item.get("input")))
    elif kind in ("message", "") and "role" in item:
        conversation.add_message(_ROLES.get(as_text(item.get("role")), "user"), read_text(item.get("content")))


def _change_item(item: Any, keys: Iterator[str], changed: Mapping[str, str]) -> Any:
    if as_text(as_dict(item).get("type")) not in _RESULTS:
        return item
    key = next(keys)
    return {**item, "output": replace_text(item.get("output"), changed[key], "input_text")} if key in changed else item


def _read_tools(body: Mapping[str, Any]) -> tuple[ToolDeclaration, ...]:
    return tuple(
        [
            ToolDeclaration(
                name,
                as_text(tool.get("description")),
                as_dict(tool.get("parameters")),
                CUSTOM if tool["type"] == "custom" else "",
            )
            for tool in map(as_dict, as_list(body.get("tools")))
            if tool.get("type") in ("function", "custom") and (name := as_text(tool.get("name")))
        ]
    )


CACHE = ("cached_tokens", "cache_write_tokens")
_KNOWN_OF_CALL = ("type", "status", "call_id", "name", "arguments")


def find_kind(item: Any) -> PartKind:
    kind = as_dict(item).get("type")
    if kind == "message":
        return "text"
    return "call" if kind == "function_call" else "other"


def read_item_text(item: dict[str, Any]) -> str:
    return "".join(
        [as_text(p.get("text")) for p in map(as_dict, as_list(item.get("content"))) if p.get("type") == "output_text"]
    )


def read_call(item: dict[str, Any]) -> ToolCall:
    arguments = read_arguments(item.get("arguments"), "")
    return ToolCall(as_text(item.get("call_id")), as_text(item.get("name")), arguments)


def read_custom_calls(output: list[Any]) -> tuple[ToolCall, ...]:
    """Return the calls with plain-text input, which faults do not change."""
    known = [as_dict(item) for item in output if as_dict(item).get("type") == "custom_tool_call"]
    return tuple([ToolCall(as_text(i.get("call_id")), as_text(i.get("name")), as_text(i.get("input"))) for i in known])


def read_finish(response: dict[str, Any], called: bool) -> tuple[Finish, ...]:
    status = response.get("status")
    if status == "completed":
        return (Finish("tool_calls" if called else "stop"),)
    if status != "incomplete":
        return ()
    filtered = as_dict(response.get("incomplete_details")).get("reason") == "content_filter"
    return (Finish("content_filter" if filtered else "length"),)


def read_usage(response: dict[str, Any]) -> tuple[Usage, ...]:
    used = as_dict(response.get("usage"))
    cache = [as_count(as_dict(used.get("input_tokens_details")).get(key)) for key in CACHE]
    return (Usage(as_count(used.get("input_tokens")), as_count(used.get("output_tokens")), *cache),) if used else ()


class ResponseEvents:
    """Reads the events of a stream."""

    def __init__(self) -> None:
        self._open: dict[int, list[Any]] = {}
        """Events of items that are kept as they arrived, by the item's position in the output."""

    def read_event(self, event: dict[str, Any], got: StreamedReply) -> None:
        """Read one event of a stream."""
        at = as_count(event.get("output_index"))
        match event.get("type"):
            case "response.created":
                got.model = as_text(as_dict(event.get("response")).get("model"))
            case "response.output_text.delta":
                got.add_text(as_text(event.get("delta")))
            case "response.output_item.added" | "response.output_item.done":
                if find_kind(item := as_dict(event.get("item"))) == "call":
                    _read_call_item(at, item, got)
                elif event["type"].endswith(".done"):
                    _read_custom_item(at, item, got)
            case "response.function_call_arguments.delta":
                got.add_arguments(at, as_text(event.get("delta")))
            case "response.completed" | "response.incomplete":
                _read_end(as_dict(event.get("response")), got)
            case "response.failed":
                got.set_trouble(refusals.read_trouble(as_dict(event.get("response"))))
            case "error":
                got.set_trouble(refusals.read_trouble(event))
        if got.keep:
            self._keep_other(at, event, got)

    def _keep_other(self, at: int, event: dict[str, Any], got: StreamedReply) -> None:
        """Keep the parts of an event that the neutral form does not support."""
        kind, item = as_text(event.get("type")), as_dict(event.get("item"))
        if kind == "response.output_item.added":
            if find_kind(item) == "other":
                self._open[at] = []
                got.add_aside(as_text(item.get("type")), self._open[at])
            elif find_kind(item) == "text":
                got.add_aside("", [event])
        elif kind == "response.content_part.added" and as_dict(event.get("part")).get("type") != "output_text":
            if at not in self._open:
                self._open[at] = []
                got.add_aside(as_text(as_dict(event.get("part")).get("type")), self._open[at])
        elif kind == "response.output_text.delta" and event.get("logprobs"):
            got.add_aside("logprobs", [{**event, "delta": ""}], of_text=True)
        elif kind == "response.output_text.annotation.added":
            got.add_aside("annotations", [event], of_text=True)
        if kind and at in self._open and "output_index" in event:
            self._open[at].append(event)


def _read_call_item(at: int, item: dict[str, Any], got: StreamedReply) -> None:
    call = read_call(item)
    got.add_call(at, call.id, call.name, otherwise=call.arguments)
    got.add_call_fields(at, {name: value for name, value in item.items() if name not in _KNOWN_OF_CALL})


def _read_custom_item(at: int, item: Any, got: StreamedReply) -> None:
    for call in read_custom_calls([item]):
        got.add_other_call(at, call.id, call.name, call.arguments)


def _read_end(response: dict[str, Any], got: StreamedReply) -> None:
    got.model = got.model or as_text(response.get("model"))
    got.last = response
    if got.is_empty and not got.others:  # some servers send the complete text only here
        for at, item in enumerate(as_list(response.get("output"))):
            if find_kind(item) == "call":
                _read_call_item(at, item, got)
            elif find_kind(item) == "text":
                got.add_text(read_item_text(item))
            _read_custom_item(at, item, got)
    for finish in read_finish(response, got.has_calls):
        got.set_finish(finish.reason)
    for usage in read_usage(response):
        got.set_usage(usage)
