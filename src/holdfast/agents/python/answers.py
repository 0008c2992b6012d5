"""What a Python agent gave, as text: awaited, joined, found in the usual field, cut to the limit."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from holdfast.agents.answer_fields import CONTENT_KEYS

_AI = ("ai", "AIMessageChunk", "assistant")
_HUMAN = ("human", "HumanMessageChunk", "user")
_OTHERS = ("system", "developer", "tool", "function", "chat", "SystemMessageChunk", "ToolMessageChunk")
_ROLES = frozenset((*_AI, *_HUMAN, *_OTHERS))
ANSWER_LIMIT = 1_000_000
"""Characters of an answer that are kept."""
READ_LIMIT = 64_000_000
"""Characters that are taken from an agent that answers in pieces; then it is asked for no more."""


class NoText(Exception):
    """What the agent returned is of a shape that no text can be found in."""


Take = Callable[[str], None]


async def settle(value: Any, take: Take) -> Any:
    """Awaits what is awaitable; gives `take` the pieces of what comes in pieces, and their text back."""
    if inspect.isawaitable(value):
        value = await value
    if isinstance(value, AsyncIterator):
        pieces = Pieces(take)
        async for piece in value:
            if pieces.add(piece):
                break
        return pieces.text()
    return settle_plain(value, take)


def settle_plain(value: Any, take: Take) -> Any:
    """Joins the pieces of a generator."""
    if not isinstance(value, Iterator):
        return value
    pieces = Pieces(take)
    for piece in value:
        if pieces.add(piece):
            break
    return pieces.text()


def must_wait(value: Any) -> bool:
    """Whether it takes an event loop to have the value."""
    return inspect.isawaitable(value) or isinstance(value, AsyncIterator)


class Pieces:
    """An answer that comes in pieces."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self._held: list[str] = []
        self._size = 0

    def add(self, piece: Any) -> bool:
        """Takes one piece; True if that is enough."""
        text = text_of(piece)
        if text:
            self._held.append(text)
            self._size += len(text)
            self._take(text)
        return self._size > READ_LIMIT

    def text(self) -> str:
        return "".join(self._held)


def text_of(value: Any, asked: str = "") -> str | None:
    """The answer's text: text itself, what the model said last since `asked` in a list of messages, or the usual
    content field of a dict or object; None is no answer."""
    if value is None:
        return None
    if isinstance(value, str):
        return str.__str__(value)  # a library's own kind of text becomes plain text
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "replace")
    if is_ai(value):
        return spoken(value["content"] if isinstance(value, dict) else value.content)
    messages = _messages(value)
    said = last_said(messages, asked) if messages else None
    if said:
        return said
    for name in CONTENT_KEYS:
        inner = value.get(name) if isinstance(value, dict) else getattr(value, name, None)
        if isinstance(inner, str) or (inner is not None and not callable(inner)):  # LangChain has text to be called
            return text_of(inner)
    if messages is not None:
        return said
    if isinstance(value, list):
        return _joined(value)
    if isinstance(value, dict | tuple | int | float):
        return _as_json(value)
    if callable(getattr(value, "invoke", None)):
        raise NoText(f"the agent returned a {type(value).__name__} and did not ask it: name that in agent.endpoint")
    if not _speaks(type(value)):
        raise NoText(f"the agent returned a {type(value).__name__}, which has no text")
    return str(value)


def _messages(value: Any) -> list[Any] | None:
    """The messages that this is or holds, as a graph's state does."""
    held = value.get("messages") if isinstance(value, dict) else getattr(value, "messages", value)
    return held if are_messages(held) or (held == [] and held is not value) else None


def _speaks(kind: type) -> bool:
    """Whether a class says in words of its own what its objects are."""
    return any("__str__" in vars(c) or "__repr__" in vars(c) for c in kind.__mro__[:-1])


def _joined(pieces: list[Any]) -> str:
    """A list of content blocks is their text; any other list is JSON."""
    blocks = [p if isinstance(p, str) else p["text"] for p in pieces if isinstance(p, str) or _is_block(p)]
    return (
        "".join(blocks) if blocks and len(blocks) == len(pieces) and any(map(_is_block, pieces)) else _as_json(pieces)
    )


def _is_block(piece: Any) -> bool:
    return isinstance(piece, dict) and isinstance(piece.get("text"), str)


def _as_json(value: Any) -> str:
    import json

    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        return str(value)


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
