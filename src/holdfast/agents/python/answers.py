"""Turns the result of a Python agent into text: awaits it, joins its parts, finds the usual field, limits it."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from holdfast.agents.conversation import CONTENT_KEYS

_AI = ("ai", "AIMessageChunk", "assistant")
_HUMAN = ("human", "HumanMessageChunk", "user")
_OTHERS = ("system", "developer", "tool", "function", "chat", "SystemMessageChunk", "ToolMessageChunk")
_ROLES = frozenset((*_AI, *_HUMAN, *_OTHERS))
ANSWER_LIMIT = 1_000_000
"""Maximum number of characters of an answer."""
READ_LIMIT = 64_000_000
"""Maximum number of characters that are read from a streamed answer."""


class NoText(Exception):
    """The agent's result has a shape in which no text can be found."""


Take = Callable[[str], None]


async def settle(value: Any, take: Take) -> Any:
    """Await an awaitable; join the parts of a streamed answer and pass each of them to `take`."""
    if inspect.isawaitable(value):
        value = await value
    if isinstance(value, AsyncIterator):
        pieces = StreamedAnswer(take)
        async for piece in value:
            if pieces.add(piece):
                break
        return pieces.join()
    return settle_plain(value, take)


def settle_plain(value: Any, take: Take) -> Any:
    """Join the parts of a generator."""
    if not isinstance(value, Iterator):
        return value
    pieces = StreamedAnswer(take)
    for piece in value:
        if pieces.add(piece):
            break
    return pieces.join()


def needs_loop(value: Any) -> bool:
    """Return whether the value needs an event loop."""
    return inspect.isawaitable(value) or isinstance(value, AsyncIterator)


class StreamedAnswer:
    """A streamed answer."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self._parts: list[str] = []
        self._size = 0

    def add(self, piece: Any) -> bool:
        """Add one part; return True if that is enough."""
        text = to_text(piece)
        if text:
            self._parts.append(text)
            self._size += len(text)
            self._take(text)
        return self._size > READ_LIMIT

    def join(self) -> str:
        return "".join(self._parts)


def to_text(value: Any, prompt: str = "") -> str | None:
    """Return the answer's text; None if there is no answer.

    It is the text itself, the model's last message since `prompt` in a list of messages, or the usual content field of
    a dict or object.
    """
    if value is None:
        return None
    if isinstance(value, str):
        return str.__str__(value)  # converts a library's subclass of str to plain text
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "replace")
    if is_ai_message(value):
        return read_content(value["content"] if isinstance(value, dict) else value.content)
    # the messages that this is or contains, like the state of a graph
    messages = value.get("messages") if isinstance(value, dict) else getattr(value, "messages", value)
    if not (are_messages(messages) or (messages == [] and messages is not value)):
        messages = None
    reply = find_last_reply(messages, prompt) if messages else None
    if reply:
        return reply
    for name in CONTENT_KEYS:
        inner = value.get(name) if isinstance(value, dict) else getattr(value, name, None)
        # In LangChain, `text` may be a method.
        if isinstance(inner, str) or (inner is not None and not callable(inner)):
            return to_text(inner)
    if messages is not None:
        return reply
    if isinstance(value, list):
        return _join(value)
    if isinstance(value, dict | tuple | int | float):
        return _to_json(value)
    name = f"an object of type {type(value).__name__}"
    if callable(getattr(value, "invoke", None)):
        raise NoText(f"the agent returned {name} and did not call it: name it in agent.endpoint")
    if not any("__str__" in vars(kind) or "__repr__" in vars(kind) for kind in type(value).__mro__[:-1]):
        raise NoText(f"the agent returned {name}, which has no text")
    return str(value)


def _join(pieces: list[Any]) -> str:
    """Join the text of a list of content blocks; any other list becomes JSON."""
    blocks = [p if isinstance(p, str) else p["text"] for p in pieces if isinstance(p, str) or _is_block(p)]
    return (
        "".join(blocks) if blocks and len(blocks) == len(pieces) and any(map(_is_block, pieces)) else _to_json(pieces)
    )


def _is_block(piece: Any) -> bool:
    return isinstance(piece, dict) and isinstance(piece.get("text"), str)


def _to_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        return str(value)


def are_messages(value: Any) -> bool:
    """Return whether this is a list of chat messages: objects, dicts or pairs of role and content."""
    return isinstance(value, list) and bool(value) and all(_find_role(item) for item in value)


def find_last_reply(messages: list[Any], prompt: str) -> str | None:
    """Return the text of the last AI message; None if there is none since `prompt`."""
    for message in reversed(messages):
        role = _find_role(message)
        if role in _AI:
            return read_content(_get_content(message))
        if role in _HUMAN and prompt and read_content(_get_content(message)) == prompt:
            return None
    return None


def is_ai_message(value: Any) -> bool:
    """Return whether this is a message of a model."""
    return not isinstance(value, tuple) and _find_role(value) in _AI and isinstance(_get_content(value), str | list)


def read_content(content: Any) -> str:
    """Return the text of a message: its content, or the text parts of it."""
    if isinstance(content, str):
        return str.__str__(content)
    parts = content if isinstance(content, list) else []
    return "".join([part if isinstance(part, str) else _read_text_part(part) for part in parts])


def _read_text_part(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) and part.get("type", "text") == "text" else None
    return text if isinstance(text, str) else ""


def _find_role(message: Any) -> str:
    """Return the role of a message; empty if this is not a message."""
    if isinstance(message, tuple):
        role = message[0] if len(message) == 2 else ""
    elif isinstance(message, dict):
        role = (message.get("type") or message.get("role")) if "content" in message else ""
    else:
        role = getattr(message, "type", "") if hasattr(message, "content") else ""
    return role if isinstance(role, str) and role in _ROLES else ""


def _get_content(message: Any) -> Any:
    if isinstance(message, tuple):
        return message[1]
    return message.get("content") if isinstance(message, dict) else getattr(message, "content", None)
