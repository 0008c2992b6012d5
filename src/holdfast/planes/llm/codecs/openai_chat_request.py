"""Requests of OpenAI's Chat Completions, with the tool calls and results that smolagents writes into their text."""

from __future__ import annotations

import ast
import builtins
import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec.json import encode

from holdfast.model.completion import ToolCall
from holdfast.planes.llm.codecs.loose import (
    as_dict,
    as_list,
    as_number,
    as_optional_count,
    as_text,
    read_text,
    replace_text,
    to_json_text,
)
from holdfast.planes.llm.codecs.request import Conversation, ModelRequest, Role, ToolDeclaration

INTERPRETER = "python_interpreter"
"""The framework's name for running code; used as the tool's name if the code calls several tools, or none."""
_CODE = re.compile(r"<code>(.*?)(?:</code>|\Z)", re.DOTALL)
_FENCED = re.compile(r"```(?:python|py)\s*\n(.*?)\n?(?:```|\Z)", re.DOTALL)
_KNOWN_NAMES = frozenset((*dir(builtins), "final_answer"))
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
    read: list[dict[str, Any]] = []
    open_call = ""
    for message in map(as_dict, messages):
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


def find_calls(text: str) -> tuple[ToolCall, ...]:
    """Return the call that a client would find in the text of a reply: an object with a name and arguments, or code to
    run.
    """
    if code := extract_code(text):
        return (ToolCall("", *find_called_tool(code)),)
    # Clients that let a model write its calls as text look for the outermost object, with any words around it. Whether
    # it really is a call is known only when a result arrives.
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
    try:
        entries = ast.literal_eval(written.strip())
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
    # Code that uses one tool is a call of that tool. With several, or none, nobody can say which of them a result
    # belongs to, so it is a call of the interpreter.
    names = {name for name, _ in calls}
    if len(names) != 1:
        return INTERPRETER, encode({"code": code}).decode()
    name, node = calls[0]
    return name, encode({word.arg: _read_literal(word.value) for word in node.keywords if word.arg}).decode()


def extract_output(observation: str) -> str:
    """Return the output of the code, without the framework's words around it."""
    if not observation.startswith(_LOGS):
        return observation
    logs = observation.removeprefix(_LOGS)
    return logs.partition(_LAST)[0] or logs


def _list_unknown_calls(tree: ast.Module) -> list[tuple[str, ast.Call]]:
    """List the calls of names that neither Python nor the code itself defines."""
    defined = set(_KNOWN_NAMES)
    calls: list[tuple[str, ast.Call]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            defined.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            defined.update((name.asname or name.name).partition(".")[0] for name in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined.add(node.id)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            calls.append((node.func.id, node))
    return [(name, call) for name, call in calls if name not in defined]


def _read_literal(value: ast.expr) -> Any:
    """Return the value of a literal that JSON can hold; any other expression as its source text."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str | int | float | bool | None):
        return value.value
    return ast.unparse(value)


_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "assistant": "assistant"}
_RESULTS = ("tool", "function")
CUSTOM = "a custom tool"
MOST_COPIES = 128
"""OpenAI's maximum number of choices."""


def read_request(path: str, body: Mapping[str, Any]) -> ModelRequest:
    """Read a request; on Azure the model is in the path."""
    form, metadata = as_dict(body.get("response_format")), as_dict(body.get("metadata"))
    limit = as_optional_count(body.get("max_completion_tokens"))
    wanted = (("logprobs", body.get("logprobs") is True), ("audio", "audio" in as_list(body.get("modalities"))))
    return ModelRequest(
        as_text(body.get("model")) or path.partition("/deployments/")[2].partition("/")[0],
        read_conversation(body).build_messages(),
        read_tools(body),
        body.get("stream") is True,
        as_dict(body.get("stream_options")).get("include_usage") is True,
        as_optional_count(body.get("max_tokens")) if limit is None else limit,
        as_number(body.get("temperature")),
        _read_choice(body.get("tool_choice")),
        str(form.get("type")).startswith("json"),
        copies=min(as_optional_count(body.get("n")) or 1, MOST_COPIES),
        schema=read_strict_schema(form["json_schema"]) if "json_schema" in form else None,
        unscriptable=tuple([name for name, is_wanted in wanted if is_wanted]),
        echo=echo_service_tier(as_text(body.get("service_tier"))) | ({"metadata": metadata} if metadata else {}),
    )


def echo_service_tier(tier: str) -> dict[str, Any]:
    """Return the service tier that the request asks for."""
    return {"service_tier": "default" if tier in ("", "auto") else tier}


def read_strict_schema(form: Any) -> dict[str, Any] | None:
    """Return the schema of a `json_schema` format, unless the model may deviate from it."""
    fields = as_dict(form)
    return as_dict(fields.get("schema")) or None if fields.get("strict") is not False else None


def read_tools(body: Mapping[str, Any]) -> tuple[ToolDeclaration, ...]:
    """Return the functions among the tools, in the form that Ollama uses, too."""
    listed = [as_dict(tool) for tool in as_list(body.get("tools"))]
    tools = [(as_dict(tool.get("function")), "") for tool in listed]
    tools += [(as_dict(tool.get("custom")), CUSTOM) for tool in listed]
    tools += [(as_dict(function), "one of the old `functions`") for function in as_list(body.get("functions"))]
    return tuple(
        [
            ToolDeclaration(name, as_text(tool.get("description")), as_dict(tool.get("parameters")), form)
            for tool, form in tools
            if (name := as_text(tool.get("name")))
        ]
    )


def read_conversation(body: Mapping[str, Any]) -> Conversation:
    """Read the messages of a request."""
    conversation = Conversation()
    sent = as_list(body.get("messages"))
    for node, message in zip(sent, read_written_calls(sent), strict=True):
        role, text = message.get("role"), read_text(message.get("content"))
        if role in _RESULTS:
            conversation.add_result(node, as_text(message.get("tool_call_id")), as_text(message.get("name")), text)
            continue
        conversation.add_message(_ROLES.get(str(role), "user"), text)
        if role == "assistant":
            for call in as_list(message.get("tool_calls")):
                if function := as_dict(as_dict(call).get("function")):
                    arguments = to_json_text(function.get("arguments", "{}"))
                    conversation.add_call(as_text(call.get("id")), as_text(function.get("name")), arguments)
            if function := as_dict(message.get("function_call")):
                conversation.add_call("", as_text(function.get("name")), to_json_text(function.get("arguments", "{}")))
    return conversation


def write_result(message: dict[str, Any], text: str, failed: bool) -> None:
    """Write another text into a result. This format cannot mark a failed tool."""
    content = message.get("content")
    if message.get("role") not in _RESULTS:  # written into a text: the framework's words around it stay
        written = read_text(content).removeprefix(RESULT)
        output = extract_output(written)
        start, _, end = written.partition(output) if output else (written, "", "")
        text = f"{RESULT}{start}{text}{end}"
    message["content"] = replace_text(content, text)


def _read_choice(choice: Any) -> str | None:
    if choice is None or isinstance(choice, str):
        return choice
    return as_text(as_dict(as_dict(choice).get("function")).get("name")) or None
