"""Requests of OpenAI's Responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.planes.llm.codecs.loose import items, json_text, number, obj, text_in, whole, with_text_in, word
from holdfast.planes.llm.codecs.openai_chat_request import CUSTOM, service_tier, strict_schema
from holdfast.planes.llm.codecs.request import ChatMessage, Conversation, ModelRequest, Role, ToolDeclared

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "assistant": "assistant"}
_RESULTS = ("function_call_output", "custom_tool_call_output")
_ECHOED = (
    "background", "instructions", "max_tool_calls", "metadata", "parallel_tool_calls", "previous_response_id", "prompt",
    "prompt_cache_key", "prompt_cache_retention", "reasoning", "safety_identifier", "store", "tool_choice", "tools",
    "top_p", "truncation", "user",
)  # fmt: skip


def asked(body: Mapping[str, Any]) -> ModelRequest:
    """The request. What a server keeps (`previous_response_id`, `conversation`) is not in it."""
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
        echo=service_tier(body) | _echo(body),
    )


def _echo(body: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: body[name] for name in _ECHOED if body.get(name) is not None}
    if kept := body.get("conversation"):
        found["conversation"] = kept if isinstance(kept, dict) else {"id": kept}
    return found | {"text": {"format": {"type": "text"}, **obj(body.get("text"))}}


def with_results(body: Mapping[str, Any], changed: Mapping[str, str]) -> dict[str, Any]:
    """The request with other texts in its tool results. This format has no place to say that a tool failed."""
    if not isinstance(body.get("input"), list):
        return dict(body)
    keys = iter([result.key for message in _messages(body) for result in message.results])
    return {**body, "input": [_changed(item, keys, changed) for item in body["input"]]}


def _messages(body: Mapping[str, Any]) -> tuple[ChatMessage, ...]:
    conversation = Conversation()
    if instructions := word(body.get("instructions")):
        conversation.say("system", instructions)
    given = body.get("input")
    if isinstance(given, str):
        conversation.say("user", given)
    for item in items(given):
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
