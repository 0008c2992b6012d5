"""The answer in a list of chat messages: what the model said last."""

from __future__ import annotations

from typing import Any

_AI = ("ai", "AIMessageChunk", "assistant")
_HUMAN = ("human", "HumanMessageChunk", "user")
_OTHERS = ("system", "developer", "tool", "function", "chat", "SystemMessageChunk", "ToolMessageChunk")
_ROLES = frozenset((*_AI, *_HUMAN, *_OTHERS))


def are_messages(value: Any) -> bool:
    """Whether this is a list of chat messages: objects, dicts or pairs of role and content."""
    return isinstance(value, list) and bool(value) and all(_role(item) for item in value)


def last_said(messages: list[Any], asked: str) -> str | None:
    """The text of the last AI message; None if there is none since `asked`, which an older one does not answer."""
    for message in reversed(messages):
        role = _role(message)
        if role in _AI:
            return spoken(_content(message))
        if role in _HUMAN and asked and spoken(_content(message)) == asked:
            return None
    return None


def is_ai(value: Any) -> bool:
    """Whether this is a message of a model's."""
    return not isinstance(value, tuple) and _role(value) in _AI and isinstance(_content(value), str | list)


def spoken(content: Any) -> str:
    """The text of a message: its content, or the text parts of it."""
    if isinstance(content, str):
        return str.__str__(content)
    parts = content if isinstance(content, list) else []
    return "".join([part if isinstance(part, str) else _text(part) for part in parts])


def _text(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) and part.get("type", "text") == "text" else None
    return text if isinstance(text, str) else ""


def _role(message: Any) -> str:
    """Who speaks; empty if it is no message."""
    if isinstance(message, tuple):
        role = message[0] if len(message) == 2 else ""
    elif isinstance(message, dict):
        role = (message.get("type") or message.get("role")) if "content" in message else ""
    else:
        role = getattr(message, "type", "") if hasattr(message, "content") else ""
    return role if isinstance(role, str) and role in _ROLES else ""


def _content(message: Any) -> Any:
    if isinstance(message, tuple):
        return message[1]
    return message.get("content") if isinstance(message, dict) else getattr(message, "content", None)
