"""Requests of OpenAI's Chat Completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.planes.llm.codecs.loose import (
    as_dict,
    as_list,
    as_text,
    read_fields,
    read_text,
    replace_text,
    to_json_text,
)
from holdfast.planes.llm.codecs.request import Conversation, ModelRequest, Role, ToolDeclaration
from holdfast.planes.llm.codecs.written_tools import RESULT, read_written_calls

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "assistant": "assistant"}
_RESULTS = ("tool", "function")
CUSTOM = "a custom tool"
MOST_COPIES = 128
"""OpenAI's maximum number of choices."""


def read_request(path: str, body: Mapping[str, Any]) -> ModelRequest:
    """Read a request; on Azure the model is in the path."""
    model, form, modes, options, tier, metadata, limit, old_limit, temperature, copies = read_fields(
        body, model="", response_format={}, modalities=[], stream_options={}, service_tier="", metadata={},
        max_completion_tokens=int, max_tokens=int, temperature=float, n=int,
    )  # fmt: skip
    wanted = (("logprobs", body.get("logprobs") is True), ("audio", "audio" in modes))
    return ModelRequest(
        model or path.partition("/deployments/")[2].partition("/")[0],
        _read_messages(body),
        read_tools(body),
        body.get("stream") is True,
        options.get("include_usage") is True,
        old_limit if limit is None else limit,
        temperature,
        _read_choice(body.get("tool_choice")),
        str(form.get("type")).startswith("json"),
        copies=min(copies or 1, MOST_COPIES),
        schema=read_strict_schema(form["json_schema"]) if "json_schema" in form else None,
        unscriptable=tuple([name for name, wants in wanted if wants]),
        echo=echo_service_tier(tier) | ({"metadata": metadata} if metadata else {}),
    )


def echo_service_tier(tier: str) -> dict[str, Any]:
    """Return the service tier that the request asks for."""
    return {"service_tier": "default" if tier in ("", "auto") else tier}


def read_strict_schema(form: Any) -> dict[str, Any] | None:
    """Return the schema of a `json_schema` format, unless the model may deviate from it."""
    fields = as_dict(form)
    return as_dict(fields.get("schema")) or None if fields.get("strict") is not False else None


def replace_results(body: Mapping[str, Any], changed: Mapping[str, str], failed: frozenset[str]) -> dict[str, Any]:
    """Return the request with other texts in its tool results. This format cannot mark a failed tool."""
    if not isinstance(body.get("messages"), list):
        return dict(body)
    keys = iter([result.key for message in _read_messages(body) for result in message.results])
    sent = as_list(body.get("messages"))
    read = zip(sent, read_written_calls(sent), strict=True)
    return {**body, "messages": [_change_message(message, view, keys, changed) for message, view in read]}


def read_tools(body: Mapping[str, Any]) -> tuple[ToolDeclaration, ...]:
    """Return the functions among the tools, in the form that Ollama uses, too."""
    if "tools" not in body and "functions" not in body:
        return ()
    tools = [(as_dict(as_dict(tool).get("function")), "") for tool in as_list(body.get("tools"))]
    tools += [(as_dict(as_dict(tool).get("custom")), CUSTOM) for tool in as_list(body.get("tools"))]
    tools += [(as_dict(function), "one of the old `functions`") for function in as_list(body.get("functions"))]
    return tuple(
        [
            ToolDeclaration(name, as_text(tool.get("description")), as_dict(tool.get("parameters")), form)
            for tool, form in tools
            if (name := as_text(tool.get("name")))
        ]
    )


def _read_messages(body: Mapping[str, Any]) -> Any:
    conversation = Conversation()
    (sent,) = read_fields(body, messages=[])
    for message in read_written_calls(sent):
        role, content = message.get("role"), message.get("content")
        text = content if isinstance(content, str) else read_text(content)
        if role in _RESULTS:
            conversation.add_result(as_text(message.get("tool_call_id")), as_text(message.get("name")), text)
            continue
        conversation.add_message(_ROLES.get(str(role), "user"), text)
        if role == "assistant":
            for call in as_list(message.get("tool_calls")):
                if function := as_dict(as_dict(call).get("function")):
                    arguments = to_json_text(function.get("arguments", "{}"))
                    conversation.add_call(as_text(call.get("id")), as_text(function.get("name")), arguments)
            if function := as_dict(message.get("function_call")):
                conversation.add_call("", as_text(function.get("name")), to_json_text(function.get("arguments", "{}")))
    return conversation.build_messages()


def _change_message(message: Any, view: Any, keys: Any, changed: Mapping[str, str]) -> Any:
    if as_text(as_dict(view).get("role")) not in _RESULTS:
        return message
    key = next(keys)
    if key not in changed:
        return message
    content, text = message.get("content"), changed[key]
    if view is not message:
        text = _replace_result(read_text(content), view["content"], text)
    return {**message, "content": replace_text(content, text)}


def _replace_result(written: str, result: str, text: str) -> str:
    """Return a result inside a text, replaced by another text; the framework's words around it stay."""
    start, separator, end = written.removeprefix(RESULT).partition(result)
    return f"{RESULT}{start}{text}{end}" if separator else RESULT + text


def _read_choice(choice: Any) -> str | None:
    if choice is None or isinstance(choice, str):
        return choice
    return as_text(as_dict(as_dict(choice).get("function")).get("name")) or None
