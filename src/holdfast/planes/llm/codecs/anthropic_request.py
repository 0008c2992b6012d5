"""Requests of Anthropic's Messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.planes.llm.codecs.loose import items, json_text, number, obj, text_in, whole, with_text_in, word
from holdfast.planes.llm.codecs.request import ChatMessage, Conversation, ModelRequest, ToolDeclared

_CHOICES = {"any": "required", "auto": "auto", "none": "none"}


def read_request(path: str, body: Mapping[str, Any]) -> ModelRequest:
    """Reads a request."""
    choice = obj(body.get("tool_choice"))
    form = obj(obj(body.get("output_config")).get("format")) or obj(body.get("output_format"))
    return ModelRequest(
        word(body.get("model")),
        _messages(body),
        _declared(body),
        body.get("stream") is True,
        max_tokens=whole(body.get("max_tokens")),
        temperature=number(body.get("temperature")),
        tool_choice=_CHOICES.get(word(choice.get("type"))) or word(choice.get("name")) or None,
        json_reply=bool(form),
        schema=obj(form.get("schema")) or None,
    )


def replace_results(body: Mapping[str, Any], changed: Mapping[str, str], failed: frozenset[str]) -> dict[str, Any]:
    """The request with other texts in its tool results, and `is_error` on failed ones."""
    if not isinstance(body.get("messages"), list):
        return dict(body)
    keys = iter([result.key for message in _messages(body) for result in message.results])
    messages = [_with_blocks(message, keys, changed, failed) for message in items(body.get("messages"))]
    return {**body, "messages": messages}


def _messages(body: Mapping[str, Any]) -> tuple[ChatMessage, ...]:
    conversation = Conversation()
    if system := text_in(body.get("system")):
        conversation.say("system", system)
    for entry in items(body.get("messages")):
        message = obj(entry)
        _take(word(message.get("role")), message.get("content"), conversation)
    return conversation.messages()


def _take(role: str, content: Any, conversation: Conversation) -> None:
    """Reads one message; results come before the text that is sent with them."""
    blocks = [obj(block) for block in items(content)]
    results = [block for block in blocks if _is_result(block)]
    for block in results:
        text, failed = text_in(block.get("content")), block.get("is_error") is True
        conversation.result(word(block.get("tool_use_id")), "", text, failed)
    own_text = content if isinstance(content, str) else text_in([b for b in blocks if b.get("type") == "text"])
    if own_text or not results:
        conversation.say("assistant" if role == "assistant" else "system" if role == "system" else "user", own_text)
    for block in blocks:
        if block.get("type") == "tool_use":
            call_arguments = block.get("input")
            arguments = "{}" if call_arguments is None else json_text(call_arguments)
            conversation.call(word(block.get("id")), word(block.get("name")), arguments)


def _is_result(block: Any) -> bool:
    return obj(block).get("type") == "tool_result"


def _with_blocks(message: Any, keys: Iterator[str], changed: Mapping[str, str], failed: frozenset[str]) -> Any:
    content = obj(message).get("content")
    if not any(_is_result(block) for block in items(content)):
        return message
    blocks = [_changed(b, next(keys), changed, failed) if _is_result(b) else b for b in items(content)]
    return {**message, "content": blocks}


def _changed(block: dict[str, Any], key: str, changed: Mapping[str, str], failed: frozenset[str]) -> dict[str, Any]:
    if key in changed:
        block = {**block, "content": with_text_in(block.get("content"), changed[key])}
    return {**block, "is_error": True} if key in failed else block


def _declared(body: Mapping[str, Any]) -> tuple[ToolDeclared, ...]:
    """The tools that run on the agent's side: those with a schema of their own."""
    return tuple(
        [
            ToolDeclared(name, word(tool.get("description")), obj(tool.get("input_schema")))
            for tool in map(obj, items(body.get("tools")))
            if "input_schema" in tool and (name := word(tool.get("name")))
        ]
    )
