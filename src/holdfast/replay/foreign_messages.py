"""Conversations in third-party formats: OpenAI, LangChain, OpenTelemetry. The question, and the turns before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from holdfast.model.task import DialogueMessage
from holdfast.replay.foreign_json import as_json, at, decoded, first, items, text

_Role: TypeAlias = Literal["user", "assistant", "system", "tool"]

ROLES: Mapping[str, _Role] = {
    "user": "user", "human": "user", "HumanMessage": "user", "HumanMessageChunk": "user",
    "assistant": "assistant", "ai": "assistant", "model": "assistant", "AIMessage": "assistant",
    "AIMessageChunk": "assistant", "system": "system", "developer": "system", "SystemMessage": "system",
    "tool": "tool", "function": "tool", "ToolMessage": "tool", "FunctionMessage": "tool",
}  # fmt: skip
"""Names of speakers in other formats."""

ASKED = ("input", "question", "query", "prompt", "task", "user_input", "text", "message", "content", "chat_input",
         "contents", "new_message")  # fmt: skip
"""Keys under which applications store the question."""


_SPEAKER = re.compile(r"^(system|developer|user|assistant): ", re.MULTILINE)


class ForeignMessage(Struct, frozen=True):
    """One message, and its tool calls and results."""

    role: _Role
    content: str
    calls: tuple[tuple[str, str], ...] = ()
    """The requested tools: id of the call and name."""
    results: tuple[tuple[str, str, str], ...] = ()
    """Tools' answers: id of the call, name if present, the answer as JSON."""


class AskedQuestion(Struct, frozen=True):
    """The question, and the turns before it."""

    turns: tuple[str, ...]
    context: tuple[DialogueMessage, ...] = ()


def messages(value: Any) -> list[ForeignMessage]:
    """The messages of a list; empty if it is not a list of messages."""
    value = decoded(value)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]  # LangChain wraps a batch of one
    if not isinstance(value, list) or not value:
        return []
    read = [_message(one) for one in value]
    return [one for one in read if one is not None] if all(one is not None for one in read) else []


def question(value: Any) -> AskedQuestion | None:
    """The question in a trace's input of any shape; None if there is none."""
    value = decoded(value)
    if isinstance(value, str):
        spoken = _transcript(value)
        return _last_asked(spoken) if spoken else AskedQuestion((value,)) if value.strip() else None
    if isinstance(value, list):
        return _last_asked(messages(value))
    if not isinstance(value, dict):
        return None
    one = _message(value)
    if one is not None:
        return _last_asked([one])
    if value.keys() == {"args", "kwargs"}:  # a function's arguments
        arguments = value["args"] if isinstance(value["args"], list) else []
        return question(arguments[0]) if len(arguments) == 1 and not value["kwargs"] else question(value["kwargs"])
    history = messages(first(value, "messages", "chat_history", "history") or [])
    nested = question(first(value, *ASKED))
    if nested is not None:
        before = tuple(DialogueMessage(one.role, one.content) for one in history)
        return AskedQuestion(nested.turns, (*before, *nested.context))
    if history:
        return _last_asked(history)
    inner = [one for one in value.values() if isinstance(one, str | dict | list)]
    return question(inner[0]) if len(value) == 1 and inner else None


def messages_in(value: Any) -> list[ForeignMessage]:
    """The messages of a list, or of a request that contains one."""
    value = decoded(value)
    return messages(value) or messages(first(value, "messages", "contents", "input"))


def after_question(messages: Sequence[ForeignMessage]) -> list[ForeignMessage]:
    """What followed the user's last message."""
    last = max((n for n, one in enumerate(messages) if one.role == "user" and one.content.strip()), default=-1)
    return list(messages[last + 1 :])


def _last_asked(messages: Sequence[ForeignMessage]) -> AskedQuestion | None:
    """The user's last consecutive messages are the question; the rest is context."""
    end = max((n for n, one in enumerate(messages) if one.role == "user" and one.content.strip()), default=None)
    if end is None:
        return None
    start = end
    while start > 0 and messages[start - 1].role == "user" and messages[start - 1].content.strip():
        start -= 1
    before = [DialogueMessage(one.role, one.content) for one in messages[:start] if one.content.strip()]
    return AskedQuestion(tuple(one.content for one in messages[start : end + 1]), tuple(before))


def _transcript(value: str) -> list[ForeignMessage]:
    """The messages of a transcript, in which each begins with its speaker; empty for any other text."""
    if _SPEAKER.match(value) is None:
        return []
    parts = _SPEAKER.split(value)[1:]
    spoken = [ForeignMessage(ROLES[role], words.strip()) for role, words in zip(parts[::2], parts[1::2], strict=True)]
    return spoken if len(spoken) > 1 and any(one.role == "user" for one in spoken) else []


def _message(value: Any) -> ForeignMessage | None:
    if isinstance(value, list) and len(value) == 2 and value[0] in ROLES:  # LangChain's pair
        return ForeignMessage(ROLES[value[0]], content_text(value[1]))
    if not isinstance(value, dict):
        return None
    if isinstance(at(value, "kwargs"), dict):  # LangChain's constructor
        made = items(value, "id")
        return _read(str(made[-1]) if made else text(value, "kwargs", "type"), value["kwargs"])
    if isinstance(at(value, "message"), dict) and "role" not in value:  # OpenInference
        value = value["message"]
    if isinstance(at(value, "data"), dict) and "content" in value["data"]:  # LangChain's message dict
        return _read(text(value, "type"), value["data"])
    return _read(text(value, "role") or text(value, "type"), value)


def _read(role: str, value: dict[str, Any]) -> ForeignMessage | None:
    if role not in ROLES or not {"content", "parts", "contents", "tool_calls", "function_call"} & set(value):
        return None
    content = first(value, "content", "parts", "contents")
    results = tuple(_results(content, ROLES[role], value))
    return ForeignMessage(ROLES[role], content_text(content), tuple(_calls(value, content)), results)


def content_text(value: Any) -> str:
    """The text of a message's content: a text, or its parts joined."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(_part_text, value)))
    if isinstance(value, dict):
        return _part_text(value)
    return "" if value is None else as_json(value)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if text(part, "type") in ("tool_call", "tool_use", "tool_call_response", "tool_result", "reasoning", "thinking"):
        return ""
    inner = at(part, "message_content") or part
    return text(inner, "text") or text(inner, "content")


def _calls(value: dict[str, Any], parts: Any) -> Iterator[tuple[str, str]]:
    for call in items(value, "tool_calls"):
        inner = at(call, "tool_call") or call
        yield text(inner, "id"), text(inner, "function", "name") or text(inner, "name")
    for part in parts if isinstance(parts, list) else ():
        if text(part, "type") in ("tool_call", "tool_use"):
            yield text(part, "id"), text(part, "name")


def _results(content_parts: Any, role: _Role, value: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    parts = [one for one in content_parts if isinstance(one, dict)] if isinstance(content_parts, list) else []
    results = [one for one in parts if text(one, "type") in ("tool_call_response", "tool_result")]
    for part in results:
        result = next((part[key] for key in ("response", "result", "content") if key in part), None)
        yield text(part, "id") or text(part, "tool_use_id"), text(part, "name"), as_json(decoded(_flat(result)))
    if role == "tool" and not results:
        words = content_text(content_parts)
        answer = decoded(words) if words or not isinstance(content_parts, list | dict) else content_parts
        yield text(value, "tool_call_id"), text(value, "name"), as_json(answer)


def _flat(value: Any) -> Any:
    """A list of text parts as its text."""
    plain = isinstance(value, list) and value and all(text(one, "type") == "text" for one in value)
    return content_text(value) if plain else value
