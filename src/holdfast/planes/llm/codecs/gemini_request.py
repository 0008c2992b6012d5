"""Requests of Google's generateContent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from holdfast.planes.llm.codecs.loose import (
    as_dict,
    as_list,
    as_number,
    as_optional_count,
    as_text,
    parse_json,
    read_arguments,
    read_text,
    to_json_text,
)
from holdfast.planes.llm.codecs.request import Conversation, ModelRequest, ToolDeclaration

_WRAPPERS = ("result", "output", "content", "error")
"""Keys under which a result that is not an object is sent."""
_CAPITAL = re.compile(r"(?=[A-Z])")
_MOST_CANDIDATES = 8
"""Google's maximum number of candidates."""


def read_request(path: str, body: Mapping[str, Any]) -> ModelRequest:
    """Read a request; the model and whether it streams are in the path. Names may be in either case."""
    model, _, method = unquote(path.partition("?")[0]).rpartition(":")
    settings = as_dict(_get(body, "generationConfig"))
    schema = as_dict(_get(settings, "responseJsonSchema"))  # its own schemas have their types in upper case
    modes = map(as_text, as_list(_get(settings, "responseModalities")))
    wanted = (
        ("logprobs", _get(settings, "responseLogprobs") is True),
        *((mode.lower(), mode.upper() != "TEXT") for mode in modes),
    )
    return ModelRequest(
        model.rpartition("/")[2],
        read_conversation(body).build_messages(),
        _read_tools(body),
        method.startswith("stream"),
        max_tokens=as_optional_count(_get(settings, "maxOutputTokens")),
        temperature=as_number(settings.get("temperature")),
        tool_choice=_read_choice(as_dict(_get(body, "toolConfig"))),
        json_reply="json" in as_text(_get(settings, "responseMimeType")),
        copies=min(as_optional_count(_get(settings, "candidateCount")) or 1, _MOST_CANDIDATES),
        schema=schema or lower_types(as_dict(_get(settings, "responseSchema"))) or None,
        unscriptable=tuple([name for name, is_wanted in wanted if is_wanted]),
    )


def lower_types(node: Any) -> Any:
    """Return a JSON Schema with its types in lower case."""
    if isinstance(node, list):
        return [lower_types(item) for item in node]
    if not isinstance(node, dict):
        return node
    kind = node.get("type")
    lowered = {key: lower_types(value) for key, value in node.items()}
    return {**lowered, "type": kind.lower()} if isinstance(kind, str) else lowered


def _get(fields: Mapping[str, Any], name: str) -> Any:
    """Return a field by its name in camel case, or in the snake case that Google also accepts."""
    return fields[name] if name in fields else fields.get(_CAPITAL.sub("_", name).lower())


def read_conversation(body: Mapping[str, Any]) -> Conversation:
    """Read the messages of a request."""
    conversation = Conversation()
    system = _get(body, "systemInstruction")
    if text := system if isinstance(system, str) else read_text(as_dict(system).get("parts")):
        conversation.add_message("system", text)
    contents = body.get("contents")
    for content in as_list(contents) if isinstance(contents, list) else [contents]:
        _read_message(content, conversation)
    return conversation


def _read_message(content: Any, conversation: Conversation) -> None:
    """Read one message; results come before the text that is sent with them."""
    if isinstance(content, str):
        return conversation.add_message("user", content)
    parts = [as_dict(part) for part in as_list(as_dict(content).get("parts"))]
    answered = False
    for part in parts:
        if result := as_dict(_get(part, "functionResponse")):
            answered = True
            wrapper, value = _unwrap_result(result)
            failed = wrapper == "error"
            id, name = as_text(result.get("id")), as_text(result.get("name"))
            conversation.add_result(result, id, name, to_json_text(value), failed)
    text = read_text([part for part in parts if not part.get("thought")])
    if parts and (text or not answered):
        conversation.add_message("assistant" if as_dict(content).get("role") == "model" else "user", text)
    for part in parts:
        if call := as_dict(_get(part, "functionCall")):
            arguments = read_arguments(call.get("args"))
            conversation.add_call(as_text(call.get("id")), as_text(call.get("name")), arguments)
    return None


def _unwrap_result(result: dict[str, Any]) -> tuple[str, Any]:
    """Return the key that a result is wrapped in, if any, and the value inside."""
    response = as_dict(result.get("response"))
    sole = next(iter(response)) if len(response) == 1 else ""
    return (sole, response[sole]) if sole in _WRAPPERS else ("", response)


def write_result(result: dict[str, Any], text: str, failed: bool) -> None:
    """Write another text into a result, in the shape of the original as far as the text allows; a failed one becomes
    `error`."""
    wrapper, value = _unwrap_result(result)
    new = text if failed or isinstance(value, str) else parse_json(text, text)
    key = "error" if failed else wrapper or ("" if isinstance(new, dict) else "result")
    result["response"] = {key: new} if key else new


def _read_choice(config: dict[str, Any]) -> str | None:
    calling = as_dict(_get(config, "functionCallingConfig"))
    mode = as_text(calling.get("mode")).upper()
    names = as_list(_get(calling, "allowedFunctionNames"))
    if mode in ("ANY", "VALIDATED") and len(names) == 1:
        return as_text(names[0]) or None
    return {"AUTO": "auto", "VALIDATED": "auto", "NONE": "none", "ANY": "required"}.get(mode)


def _read_tools(body: Mapping[str, Any]) -> tuple[ToolDeclaration, ...]:
    tools = []
    for tool in map(as_dict, as_list(body.get("tools"))):
        for function in map(as_dict, as_list(_get(tool, "functionDeclarations"))):
            plain = _get(function, "parametersJsonSchema")
            schema = as_dict(function.get("parameters") if plain is None else plain)
            if name := as_text(function.get("name")):
                tools.append(ToolDeclaration(name, as_text(function.get("description")), schema))
    return tuple(tools)
