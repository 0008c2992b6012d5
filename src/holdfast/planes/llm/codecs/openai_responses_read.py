"""Reads OpenAI's Responses: requests, replies and stream events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.model.completion import Usage
from holdfast.planes.llm.codecs import error_replies
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
from holdfast.planes.llm.codecs.request import Conversation, ModelRequest, Role, ToolDeclaration
from holdfast.planes.llm.codecs.streamed_reply import StreamedReply

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "assistant": "assistant"}
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
        read_conversation(body).build_messages(),
        _read_tools(body),
        body.get("stream") is True,
        max_tokens=as_optional_count(body.get("max_output_tokens")),
        temperature=as_number(body.get("temperature")),
        tool_choice=choice if isinstance(choice, str) else as_text(as_dict(choice).get("name")) or None,
        json_reply=as_text(form.get("type")).startswith("json"),
        continues=bool(body.get("previous_response_id") or body.get("conversation")),
        schema=read_strict_schema(form),
        unscriptable=("logprobs",) if logprobs else (),
        echo=echo_service_tier(as_text(body.get("service_tier"))) | _build_echo(body),
    )


def _build_echo(body: Mapping[str, Any]) -> dict[str, Any]:
    echoed = {name: body[name] for name in _ECHOED if body.get(name) is not None}
    if conversation := body.get("conversation"):
        echoed["conversation"] = conversation if isinstance(conversation, dict) else {"id": conversation}
    return echoed | {"text": {"format": {"type": "text"}, **as_dict(body.get("text"))}}


def read_conversation(body: Mapping[str, Any]) -> Conversation:
    """Read the messages of a request."""
    conversation = Conversation()
    if instructions := as_text(body.get("instructions")):
        conversation.add_message("system", instructions)
    input = body.get("input")
    if isinstance(input, str):
        conversation.add_message("user", input)
    for item in as_list(input):
        _read_entry(as_dict(item), conversation)
    return conversation


def _read_entry(item: dict[str, Any], conversation: Conversation) -> None:
    kind = as_text(item.get("type"))
    id, name = as_text(item.get("call_id")), as_text(item.get("name"))
    if kind in ("function_call_output", "custom_tool_call_output"):
        conversation.add_result(item, id, name, read_text(item.get("output")))
    elif kind == "function_call":
        conversation.add_call(id, name, to_json_text(item.get("arguments") or "{}"))
    elif kind == "custom_tool_call":
        conversation.add_call(id, name, as_text(item.get("input")))
    elif kind in ("message", "") and "role" in item:
        conversation.add_message(_ROLES.get(as_text(item.get("role")), "user"), read_text(item.get("content")))


def write_result(item: dict[str, Any], text: str, failed: bool) -> None:
    """Write another text into a result. This format cannot mark a failed tool."""
    item["output"] = replace_text(item.get("output"), text, "input_text")


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


class ResponseEvents:
    """Reads the events of a stream."""

    def __init__(self) -> None:
        self._open: dict[int, list[Any]] = {}
        """Events of items that are kept as they arrived, by the item's position in the output."""

    def read_event(self, event: dict[str, Any], reply: StreamedReply) -> None:
        """Read one event of a stream."""
        at = as_count(event.get("output_index"))
        match event.get("type"):
            case "response.created":
                reply.model = as_text(as_dict(event.get("response")).get("model"))
            case "response.output_text.delta":
                reply.add_text(as_text(event.get("delta")))
            case "response.output_item.added" | "response.output_item.done":
                item = as_dict(event.get("item"))
                if find_kind(item) == "call" or event["type"].endswith(".done"):
                    _read_item(at, item, reply)
            case "response.function_call_arguments.delta":
                reply.add_arguments(at, as_text(event.get("delta")))
            case "response.completed" | "response.incomplete":
                read_response(as_dict(event.get("response")), reply)
            case "response.failed":
                reply.set_error(error_replies.read_error(as_dict(event.get("response"))))
            case "error":
                reply.set_error(error_replies.read_error(event))
        self._keep_other(at, event, reply)

    def _keep_other(self, at: int, event: dict[str, Any], reply: StreamedReply) -> None:
        """Keep the parts of an event that the neutral form does not support."""
        kind, item = as_text(event.get("type")), as_dict(event.get("item"))
        if kind == "response.output_item.added":
            if find_kind(item) == "other":
                self._open[at] = []
                reply.add_extra(as_text(item.get("type")), self._open[at])
            elif find_kind(item) == "text":
                reply.add_extra("", [event])
        elif kind == "response.content_part.added" and as_dict(event.get("part")).get("type") != "output_text":
            if at not in self._open:
                self._open[at] = []
                reply.add_extra(as_text(as_dict(event.get("part")).get("type")), self._open[at])
        elif kind == "response.output_text.delta" and event.get("logprobs"):
            reply.add_extra("logprobs", [{**event, "delta": ""}], of_text=True)
        elif kind == "response.output_text.annotation.added":
            reply.add_extra("annotations", [event], of_text=True)
        if kind and at in self._open and "output_index" in event:
            self._open[at].append(event)


def _read_item(at: int, item: dict[str, Any], reply: StreamedReply) -> None:
    """Read a call. The text of a custom tool's call is not an object, so faults do not change it."""
    id, name, kind = as_text(item.get("call_id")), as_text(item.get("name")), item.get("type")
    if kind == "function_call":
        reply.add_call(at, id, name, fallback=read_arguments(item.get("arguments"), ""))
        reply.add_call_fields(at, {name: value for name, value in item.items() if name not in _KNOWN_OF_CALL})
    elif kind == "custom_tool_call":
        reply.add_other_call(at, id, name, as_text(item.get("input")))


def read_response(response: dict[str, Any], reply: StreamedReply) -> None:
    """Read a complete reply, or the end of a stream."""
    reply.model = reply.model or as_text(response.get("model"))
    reply.last = response
    if reply.is_empty and not reply.others:  # some servers send the complete text only here
        for at, item in enumerate(map(as_dict, as_list(response.get("output")))):
            _read_item(at, item, reply)
            if find_kind(item) == "text":
                parts = map(as_dict, as_list(item.get("content")))
                reply.add_text("".join([as_text(p.get("text")) for p in parts if p.get("type") == "output_text"]))
    if response.get("status") == "completed":
        reply.set_finish("tool_calls" if reply.has_calls else "stop")
    elif response.get("status") == "incomplete":
        filtered = as_dict(response.get("incomplete_details")).get("reason") == "content_filter"
        reply.set_finish("content_filter" if filtered else "length")
    if used := as_dict(response.get("usage")):
        cache = [as_count(as_dict(used.get("input_tokens_details")).get(key)) for key in CACHE]
        reply.set_usage(Usage(as_count(used.get("input_tokens")), as_count(used.get("output_tokens")), *cache))
