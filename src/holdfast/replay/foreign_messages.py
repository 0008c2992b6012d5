"""Conversations in third-party formats: OpenAI, LangChain, OpenTelemetry. The question, and the turns before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from holdfast.model.task import DialogueMessage
from holdfast.replay.foreign_json import decode_json, read_at, read_first, read_list, read_text, to_json

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


_NOT_TEXT = re.compile("image|audio|video|file|document|inline_?data", re.IGNORECASE)
_BLOBS = {"image", "image_url", "inline_data", "inlineData", "file_data", "fileData"}
"""Keys of parts that have no type."""
_SPEAKER = re.compile(r"^(system|developer|user|assistant): ", re.MULTILINE)


class ForeignMessage(Struct, frozen=True):
    """One message, and its tool calls and results."""

    role: _Role
    content: str
    calls: tuple[tuple[str, str], ...] = ()
    """The requested tools: id of the call and name."""
    results: tuple[tuple[str, str, str], ...] = ()
    """Tools' answers: id of the call, name if present, the answer as JSON."""
    attached: str = ""
    """The kind of its first part that is not text, such as `image_url`; empty if there is none."""


class AskedQuestion(Struct, frozen=True):
    """The question, and the turns before it."""

    turns: tuple[str, ...]
    context: tuple[DialogueMessage, ...] = ()
    attached: str = ""
    """The kind of a part of the question that is not text; empty if there is none."""


def read_messages(value: Any) -> list[ForeignMessage]:
    """Return the messages of a list; empty if it is not a list of messages."""
    value = decode_json(value)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]  # LangChain wraps a batch of one
    if not isinstance(value, list) or not value:
        return []
    read = [_read_message(entry) for entry in value]
    return [message for message in read if message is not None] if all(message is not None for message in read) else []


def find_question(value: Any) -> AskedQuestion | None:
    """Return the question in a trace's input of any shape; None if there is none."""
    value = decode_json(value)
    if isinstance(value, str):
        messages = _parse_transcript(value)
        return _find_last_question(messages) if messages else AskedQuestion((value,)) if value.strip() else None
    if isinstance(value, list):
        return _find_last_question(read_messages(value))
    if not isinstance(value, dict):
        return None
    one = _read_message(value)
    if one is not None:
        return _find_last_question([one])
    if value.keys() == {"args", "kwargs"}:  # a function's arguments
        arguments = value["args"] if isinstance(value["args"], list) else []
        return (
            find_question(arguments[0])
            if len(arguments) == 1 and not value["kwargs"]
            else find_question(value["kwargs"])
        )
    # Applications name their input as they like. The usual keys come first, then a conversation, whose last messages
    # are the question, and at last whatever a map with a single key holds.
    history = read_messages(read_first(value, "messages", "chat_history", "history") or [])
    nested = find_question(read_first(value, *ASKED))
    if nested is not None:
        before = tuple(DialogueMessage(one.role, one.content) for one in history)
        return AskedQuestion(nested.turns, (*before, *nested.context), nested.attached)
    if history:
        return _find_last_question(history)
    inner = [one for one in value.values() if isinstance(one, str | dict | list)]
    return find_question(inner[0]) if len(value) == 1 and inner else None


def find_messages(value: Any) -> list[ForeignMessage]:
    """Return the messages of a list, or of a request that contains one."""
    value = decode_json(value)
    return read_messages(value) or read_messages(read_first(value, "messages", "contents", "input"))


def list_after_question(messages: Sequence[ForeignMessage]) -> list[ForeignMessage]:
    """Return the messages after the user's last one."""
    last = max(
        (n for n, message in enumerate(messages) if message.role == "user" and message.content.strip()), default=-1
    )
    return list(messages[last + 1 :])


def _find_last_question(messages: Sequence[ForeignMessage]) -> AskedQuestion | None:
    """The user's last consecutive messages are the question; the rest is context."""
    end = max(
        (n for n, message in enumerate(messages) if message.role == "user" and message.content.strip()), default=None
    )
    if end is None:
        return None
    start = end
    while start > 0 and messages[start - 1].role == "user" and messages[start - 1].content.strip():
        start -= 1
    before = [DialogueMessage(message.role, message.content) for message in messages[:start] if message.content.strip()]
    # A picture may stand in a message of its own, before or after the question.
    user_messages = [message for message in messages[start : end + 2] if message.role == "user"]
    attached = next((message.attached for message in user_messages if message.attached), "")
    return AskedQuestion(tuple(message.content for message in messages[start : end + 1]), tuple(before), attached)


def _parse_transcript(value: str) -> list[ForeignMessage]:
    """Return the messages of a transcript, in which each begins with its speaker; empty for any other text."""
    if _SPEAKER.match(value) is None:
        return []
    parts = _SPEAKER.split(value)[1:]
    messages = [ForeignMessage(ROLES[role], words.strip()) for role, words in zip(parts[::2], parts[1::2], strict=True)]
    return messages if len(messages) > 1 and any(message.role == "user" for message in messages) else []


def _read_message(value: Any) -> ForeignMessage | None:
    if (
        isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and value[0] in ROLES
    ):  # LangChain's pair
        return ForeignMessage(ROLES[value[0]], join_content(value[1]))
    if not isinstance(value, dict):
        return None
    if isinstance(read_at(value, "kwargs"), dict):  # LangChain's constructor
        class_path = read_list(value, "id")
        return _read(str(class_path[-1]) if class_path else read_text(value, "kwargs", "type"), value["kwargs"])
    if isinstance(read_at(value, "message"), dict) and "role" not in value:  # OpenInference
        value = value["message"]
    if isinstance(read_at(value, "data"), dict) and "content" in value["data"]:  # LangChain's message dict
        return _read(read_text(value, "type"), value["data"])
    return _read(read_text(value, "role") or read_text(value, "type"), value)


def _read(role: str, value: dict[str, Any]) -> ForeignMessage | None:
    if role not in ROLES or not {"content", "parts", "contents", "tool_calls", "function_call"} & set(value):
        return None
    content = read_first(value, "content", "parts", "contents")
    results = tuple(_list_results(content, ROLES[role], value))
    calls = tuple(_list_calls(value, content))
    return ForeignMessage(ROLES[role], join_content(content), calls, results, _find_attachment(content))


def _find_attachment(parts: Any) -> str:
    listed = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    kinds = [read_text(part, "type") or "".join(sorted(_BLOBS & set(part))[:1]) for part in listed]
    return next((kind for kind in kinds if _NOT_TEXT.search(kind)), "")


def join_content(value: Any) -> str:
    """Return the text of a message's content: a text, or its parts joined."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(_read_part, value)))
    if isinstance(value, dict):
        return _read_part(value)
    return "" if value is None else to_json(value)


def _read_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if read_text(part, "type") in (
        "tool_call",
        "tool_use",
        "tool_call_response",
        "tool_result",
        "reasoning",
        "thinking",
    ):
        return ""
    inner = read_at(part, "message_content") or part
    return read_text(inner, "text") or read_text(inner, "content")


def _list_calls(value: dict[str, Any], parts: Any) -> Iterator[tuple[str, str]]:
    for call in read_list(value, "tool_calls"):
        inner = read_at(call, "tool_call") or call
        yield read_text(inner, "id"), read_text(inner, "function", "name") or read_text(inner, "name")
    for part in parts if isinstance(parts, list) else ():
        if read_text(part, "type") in ("tool_call", "tool_use"):
            yield read_text(part, "id"), read_text(part, "name")


def _list_results(content_parts: Any, role: _Role, value: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    parts = [part for part in content_parts if isinstance(part, dict)] if isinstance(content_parts, list) else []
    results = [part for part in parts if read_text(part, "type") in ("tool_call_response", "tool_result")]
    for part in results:
        result = next((part[key] for key in ("response", "result", "content") if key in part), None)
        yield (
            read_text(part, "id") or read_text(part, "tool_use_id"),
            read_text(part, "name"),
            to_json(decode_json(_flatten(result))),
        )
    if role == "tool" and not results:
        words = join_content(content_parts)
        answer = decode_json(words) if words or not isinstance(content_parts, list | dict) else content_parts
        yield read_text(value, "tool_call_id"), read_text(value, "name"), to_json(answer)


def _flatten(value: Any) -> Any:
    """Return a list of text parts as its text."""
    plain = isinstance(value, list) and value and all(read_text(part, "type") == "text" for part in value)
    return join_content(value) if plain else value
