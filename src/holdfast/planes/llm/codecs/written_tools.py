"""Tool calls and results inside the text of a conversation, as smolagents reads and writes them."""

from __future__ import annotations

import ast
import builtins
import json
import re
from typing import Any

from msgspec.json import encode

from holdfast.model.completion import ToolCall
from holdfast.planes.llm.codecs.loose import as_dict, as_list, as_text, read_text, to_json_text

INTERPRETER = "python_interpreter"
"""The framework's name for running code; used as the tool's name if the code calls several tools, or none."""
_CODE = re.compile(r"<code>(.*?)(?:</code>|\Z)", re.DOTALL)
_FENCED = re.compile(r"```(?:python|py)\s*\n(.*?)\n?(?:```|\Z)", re.DOTALL)
_OWN = frozenset((*dir(builtins), "final_answer"))
_LOGS, _LAST = "Execution logs:\n", "\nLast output from code snippet:\n"
_LONGEST_CODE = 20_000
"""Maximum length of code that is parsed, in characters."""
_CALLS = "Calling tools:\n"
RESULT = "Observation:\n"
"""Prefixes of a text that is a tool's result."""
_LONGEST = 100_000
"""Maximum length of a list of calls that is parsed, in characters."""


def read_written_calls(messages: list[Any]) -> list[dict[str, Any]]:
    """Return the messages with such calls and results moved to the format's own fields; all other messages unchanged.

    Results of several calls are in one text and cannot be distinguished: they stay text. An entry that is not an object
    becomes an empty one.
    """
    messages = [message if isinstance(message, dict) else {} for message in messages]
    if not _has_calls(messages):
        return messages
    read: list[dict[str, Any]] = []
    open_call = ""
    for message in messages:
        role, text = as_text(message.get("role")), read_text(message.get("content"))
        if open_call and role == "user" and text.startswith(RESULT):
            read.append(
                {"role": "tool", "tool_call_id": open_call, "content": extract_output(text.removeprefix(RESULT))}
            )
            open_call = ""
            continue
        calls = _parse_calls(text) if role == "assistant" and not as_list(message.get("tool_calls")) else []
        open_call = as_text(calls[0].get("id")) if len(calls) == 1 else ""
        read.append({**message, "tool_calls": calls} if calls else message)
    return read


def _has_calls(messages: list[dict[str, Any]]) -> bool:
    for message in messages:
        content = message.get("content")
        if _CALLS in (content if isinstance(content, str) else read_text(content)):
            return True
    return False


def find_calls(text: str) -> tuple[ToolCall, ...]:
    """Return the call that a client would find in the text of a reply: an object with a name and arguments, or code to
    run.
    """
    if code := extract_code(text):
        return (ToolCall("", *find_called_tool(code)),)
    start, end = text.find("{"), text.rfind("}")
    if not 0 <= start < end < start + _LONGEST:
        return ()
    try:
        fields = as_dict(json.loads(text[start : end + 1], strict=False))
    except (ValueError, RecursionError):
        return ()
    name = as_text(fields.get("name"))
    return (ToolCall("", name, to_json_text(fields.get("arguments") or {})),) if name else ()


def _parse_calls(text: str) -> list[dict[str, Any]]:
    """Return the calls in a text, which are written as a Python list."""
    _, mark, written = text.rpartition(_CALLS)
    if not mark or len(written) > _LONGEST:
        return []
    from ast import literal_eval

    try:
        entries = literal_eval(written.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return []
    return [_resolve_call(call) for call in as_list(entries) if as_dict(as_dict(call).get("function")).get("name")]


def _resolve_call(call: dict[str, Any]) -> dict[str, Any]:
    """Return the call; for code, the call of the tool that it uses."""
    function = call["function"]
    code = function.get("arguments")
    if function["name"] != INTERPRETER or not isinstance(code, str):
        return call
    name, arguments = find_called_tool(code)
    return {**call, "function": {"name": name, "arguments": arguments}}


def extract_code(text: str) -> str:
    """Return the code of a reply, extracted like the framework does; empty if there is none."""
    blocks = _CODE.findall(text) or _FENCED.findall(text)
    return "\n\n".join(part.strip() for part in blocks).strip()


def find_called_tool(code: str) -> tuple[str, str]:
    """Return the single tool that the code calls, with its named arguments as JSON; otherwise the interpreter, with
    the code."""
    try:
        calls = _list_unknown_calls(ast.parse(code)) if len(code) <= _LONGEST_CODE else []
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        calls = []
    names = {name for name, _ in calls}
    if len(names) != 1:
        return INTERPRETER, encode({"code": code}).decode()
    name, made = calls[0]
    return name, encode({word.arg: _read_literal(word.value) for word in made.keywords if word.arg}).decode()


def extract_output(observation: str) -> str:
    """Return the output of the code, without the framework's words around it."""
    if not observation.startswith(_LOGS):
        return observation
    logs = observation.removeprefix(_LOGS)
    return logs.partition(_LAST)[0] or logs


def _list_unknown_calls(tree: ast.Module) -> list[tuple[str, ast.Call]]:
    """List the calls of names that neither Python nor the code itself defines."""
    made = set(_OWN)
    calls: list[tuple[str, ast.Call]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            made.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            made.update((name.asname or name.name).partition(".")[0] for name in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            made.add(node.id)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            calls.append((node.func.id, node))
    return [(name, call) for name, call in calls if name not in made]


def _read_literal(value: ast.expr) -> Any:
    """Return the value of a literal; any other expression as its source text."""
    return value.value if isinstance(value, ast.Constant) and _is_plain(value.value) else ast.unparse(value)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool)
