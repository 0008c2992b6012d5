"""Tool calls and results that stand in the texts of a conversation: smolagents reads and writes them there."""

from __future__ import annotations

import json
from typing import Any

from holdfast.model.completion import ToolCall
from holdfast.planes.llm.codecs.loose import items, json_text, obj, text_in, word
from holdfast.planes.llm.codecs.written_code import INTERPRETER, called_in, code_in, printed_in

_CALLS = "Calling tools:\n"
RESULT = "Observation:\n"
"""What a text begins with that is a tool's result."""
_LONGEST = 100_000
"""Characters of a list of calls that are read."""


def understood(messages: list[Any]) -> list[Any]:
    """The messages with such calls and results in the fields that the format has for them; all others as they are.

    Results of several calls stand in one text and cannot be told apart: they stay text.
    """
    if not _has_calls(messages):
        return messages
    read: list[Any] = []
    open_call = ""
    for message in messages:
        role, text = word(obj(message).get("role")), text_in(obj(message).get("content"))
        if open_call and role == "user" and text.startswith(RESULT):
            read.append({"role": "tool", "tool_call_id": open_call, "content": printed_in(text.removeprefix(RESULT))})
            open_call = ""
            continue
        calls = _calls(text) if role == "assistant" and not items(message.get("tool_calls")) else []
        open_call = word(calls[0].get("id")) if len(calls) == 1 else ""
        read.append({**message, "tool_calls": calls} if calls else message)
    return read


def _has_calls(messages: list[Any]) -> bool:
    for message in messages:
        content = obj(message).get("content")
        if _CALLS in (content if isinstance(content, str) else text_in(content)):
            return True
    return False


def asked_in(text: str) -> tuple[ToolCall, ...]:
    """What a client that looks for a call in the text of a reply finds there: an object with a name and arguments, or
    code to be run."""
    if code := code_in(text):
        return (ToolCall("", *called_in(code)),)
    start, end = text.find("{"), text.rfind("}")
    if not 0 <= start < end < start + _LONGEST:
        return ()
    try:
        found = obj(json.loads(text[start : end + 1], strict=False))
    except (ValueError, RecursionError):
        return ()
    name = word(found.get("name"))
    return (ToolCall("", name, json_text(found.get("arguments") or {})),) if name else ()


def _calls(text: str) -> list[dict[str, Any]]:
    """The calls in a text; they are written as Python writes a list."""
    _, mark, written = text.rpartition(_CALLS)
    if not mark or len(written) > _LONGEST:
        return []
    from ast import literal_eval

    try:
        found = literal_eval(written.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return []
    return [_meant(call) for call in items(found) if obj(obj(call).get("function")).get("name")]


def _meant(call: dict[str, Any]) -> dict[str, Any]:
    """The call; of code that is run, the one of the tool that it calls."""
    function = call["function"]
    code = function.get("arguments")
    if function["name"] != INTERPRETER or not isinstance(code, str):
        return call
    name, arguments = called_in(code)
    return {**call, "function": {"name": name, "arguments": arguments}}
