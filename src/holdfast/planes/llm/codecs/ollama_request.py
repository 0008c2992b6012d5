"""Requests of Ollama's chat and generate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.planes.llm.codecs.conversation import Conversation, Role
from holdfast.planes.llm.codecs.loose import items, json_text, number, obj, text_in, whole, word
from holdfast.planes.llm.codecs.openai_chat_request import declared
from holdfast.planes.llm.codecs.request import ChatMessage, ModelRequest

_ROLES: dict[str, Role] = {"system": "system", "assistant": "assistant"}


def asked(body: Mapping[str, Any]) -> ModelRequest:
    """The request. It streams unless it says otherwise."""
    options = obj(body.get("options"))
    wanted = (("logprobs", body.get("logprobs") is True), ("an image", bool(body.get("width") or body.get("height"))))
    return ModelRequest(
        word(body.get("model")),
        _messages(body),
        declared(body),
        body.get("stream") is not False,
        max_tokens=whole(options.get("num_predict")),
        temperature=number(options.get("temperature")),
        json_reply=bool(body.get("format")),
        schema=obj(body.get("format")) or None,
        unscriptable=tuple([name for name, wants in wanted if wants]),
    )


def with_results(body: Mapping[str, Any], changed: Mapping[str, str]) -> dict[str, Any]:
    """The request with other texts in its tool results. This format has no place to say that a tool failed."""
    if not isinstance(body.get("messages"), list):
        return dict(body)
    keys = iter([result.key for message in _messages(body) for result in message.results])
    return {**body, "messages": [_changed(message, keys, changed) for message in items(body.get("messages"))]}


def _messages(body: Mapping[str, Any]) -> tuple[ChatMessage, ...]:
    conversation = Conversation()
    if system := word(body.get("system")):
        conversation.say("system", system)
    if prompt := word(body.get("prompt")):
        conversation.say("user", prompt)
    for found in items(body.get("messages")):
        message = obj(found)
        role, text = word(message.get("role")), text_in(message.get("content"))
        if role == "tool":
            name = word(message.get("tool_name")) or word(message.get("name"))
            conversation.result(word(message.get("tool_call_id")), name, text)
            continue
        conversation.say(_ROLES.get(role, "user"), text)
        for call in map(obj, items(message.get("tool_calls"))):
            function = obj(call.get("function"))
            given = function.get("arguments")
            arguments = "{}" if given is None else json_text(given)
            conversation.call(word(call.get("id")), word(function.get("name")), arguments)
    return conversation.messages()


def _changed(message: Any, keys: Iterator[str], changed: Mapping[str, str]) -> Any:
    if obj(message).get("role") != "tool":
        return message
    key = next(keys)
    return {**message, "content": changed[key]} if key in changed else message
