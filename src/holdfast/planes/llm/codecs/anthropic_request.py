"""Requests of Anthropic's Messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.planes.llm.codecs.loose import (
    as_dict,
    as_list,
    as_number,
    as_optional_count,
    as_text,
    read_arguments,
    read_text,
    replace_text,
)
from holdfast.planes.llm.codecs.request import Conversation, ModelRequest, ToolDeclaration

_CHOICES = {"any": "required", "auto": "auto", "none": "none"}


def read_request(path: str, body: Mapping[str, Any]) -> ModelRequest:
    """Read a request."""
    choice = as_dict(body.get("tool_choice"))
    form = as_dict(as_dict(body.get("output_config")).get("format")) or as_dict(body.get("output_format"))
    return ModelRequest(
        as_text(body.get("model")),
        read_conversation(body).build_messages(),
        _read_tools(body),
        body.get("stream") is True,
        max_tokens=as_optional_count(body.get("max_tokens")),
        temperature=as_number(body.get("temperature")),
        tool_choice=_CHOICES.get(as_text(choice.get("type"))) or as_text(choice.get("name")) or None,
        json_reply=bool(form),
        schema=as_dict(form.get("schema")) or None,
    )


def read_conversation(body: Mapping[str, Any]) -> Conversation:
    """Read the messages of a request."""
    conversation = Conversation()
    if system := read_text(body.get("system")):
        conversation.add_message("system", system)
    for entry in as_list(body.get("messages")):
        message = as_dict(entry)
        _read_message(as_text(message.get("role")), message.get("content"), conversation)
    return conversation


def _read_message(role: str, content: Any, conversation: Conversation) -> None:
    """Read one message; results come before the text that is sent with them."""
    blocks = [as_dict(block) for block in as_list(content)]
    results = [block for block in blocks if block.get("type") == "tool_result"]
    for block in results:
        text, failed = read_text(block.get("content")), block.get("is_error") is True
        conversation.add_result(block, as_text(block.get("tool_use_id")), "", text, failed)
    own_text = content if isinstance(content, str) else read_text([b for b in blocks if b.get("type") == "text"])
    if own_text or not results:
        conversation.add_message(
            "assistant" if role == "assistant" else "system" if role == "system" else "user", own_text
        )
    for block in blocks:
        if block.get("type") == "tool_use":
            arguments = read_arguments(block.get("input"))
            conversation.add_call(as_text(block.get("id")), as_text(block.get("name")), arguments)


def write_result(block: dict[str, Any], text: str, failed: bool) -> None:
    """Write another text into a result, and `is_error` if it failed."""
    block["content"] = replace_text(block.get("content"), text)
    if failed:
        block["is_error"] = True


def _read_tools(body: Mapping[str, Any]) -> tuple[ToolDeclaration, ...]:
    """Return the tools that run on the agent's side: those with a schema of their own."""
    return tuple(
        [
            ToolDeclaration(name, as_text(tool.get("description")), as_dict(tool.get("input_schema")))
            for tool in map(as_dict, as_list(body.get("tools")))
            if "input_schema" in tool and (name := as_text(tool.get("name")))
        ]
    )
