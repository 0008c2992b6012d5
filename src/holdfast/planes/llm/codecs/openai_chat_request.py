"""Requests of OpenAI's Chat Completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.planes.llm.codecs.loose import fields, items, json_text, obj, text_in, with_text_in, word
from holdfast.planes.llm.codecs.request import Conversation, ModelRequest, Role, ToolDeclared
from holdfast.planes.llm.codecs.written_tools import RESULT, understood

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "assistant": "assistant"}
_RESULTS = ("tool", "function")
CUSTOM = "a custom tool"
MOST_COPIES = 128
"""OpenAI's maximum number of choices."""


def read_request(path: str, body: Mapping[str, Any]) -> ModelRequest:
    """Reads a request; on Azure the model is in the path."""
    model, form, modes, options, tier, metadata, limit, old_limit, temperature, copies = fields(
        body, model="", response_format={}, modalities=[], stream_options={}, service_tier="", metadata={},
        max_completion_tokens=int, max_tokens=int, temperature=float, n=int,
    )  # fmt: skip
    wanted = (("logprobs", body.get("logprobs") is True), ("audio", "audio" in modes))
    return ModelRequest(
        model or path.partition("/deployments/")[2].partition("/")[0],
        _messages(body),
        declared(body),
        body.get("stream") is True,
        options.get("include_usage") is True,
        old_limit if limit is None else limit,
        temperature,
        _choice(body.get("tool_choice")),
        str(form.get("type")).startswith("json"),
        copies=min(copies or 1, MOST_COPIES),
        schema=strict_schema(form["json_schema"]) if "json_schema" in form else None,
        unscriptable=tuple([name for name, wants in wanted if wants]),
        echo=service_tier(tier) | ({"metadata": metadata} if metadata else {}),
    )


def service_tier(tier: str) -> dict[str, Any]:
    """The service tier that the request asks for."""
    return {"service_tier": "default" if tier in ("", "auto") else tier}


def strict_schema(form: Any) -> dict[str, Any] | None:
    """The schema of a `json_schema` format, unless the model may deviate from it."""
    fields = obj(form)
    return obj(fields.get("schema")) or None if fields.get("strict") is not False else None


def replace_results(body: Mapping[str, Any], changed: Mapping[str, str], failed: frozenset[str]) -> dict[str, Any]:
    """The request with other texts in its tool results. This format cannot mark a failed tool."""
    if not isinstance(body.get("messages"), list):
        return dict(body)
    keys = iter([result.key for message in _messages(body) for result in message.results])
    sent = items(body.get("messages"))
    read = zip(sent, understood(sent), strict=True)
    return {**body, "messages": [_changed(message, view, keys, changed) for message, view in read]}


def declared(body: Mapping[str, Any]) -> tuple[ToolDeclared, ...]:
    """The functions among the tools, in the form that Ollama uses, too."""
    if "tools" not in body and "functions" not in body:
        return ()
    tools = [(obj(obj(tool).get("function")), "") for tool in items(body.get("tools"))]
    tools += [(obj(obj(tool).get("custom")), CUSTOM) for tool in items(body.get("tools"))]
    tools += [(obj(function), "one of the old `functions`") for function in items(body.get("functions"))]
    return tuple(
        [
            ToolDeclared(name, word(tool.get("description")), obj(tool.get("parameters")), form)
            for tool, form in tools
            if (name := word(tool.get("name")))
        ]
    )


def _messages(body: Mapping[str, Any]) -> Any:
    conversation = Conversation()
    (sent,) = fields(body, messages=[])
    for message in understood(sent):
        role, content = message.get("role"), message.get("content")
        text = content if isinstance(content, str) else text_in(content)
        if role in _RESULTS:
            conversation.result(word(message.get("tool_call_id")), word(message.get("name")), text)
            continue
        conversation.say(_ROLES.get(str(role), "user"), text)
        if role == "assistant":
            _calls(message, conversation)
    return conversation.messages()


def _calls(message: dict[str, Any], conversation: Conversation) -> None:
    for call in items(message.get("tool_calls")):
        if function := obj(obj(call).get("function")):
            arguments = json_text(function.get("arguments", "{}"))
            conversation.call(word(call.get("id")), word(function.get("name")), arguments)
    if function := obj(message.get("function_call")):
        conversation.call("", word(function.get("name")), json_text(function.get("arguments", "{}")))


def _changed(message: Any, view: Any, keys: Any, changed: Mapping[str, str]) -> Any:
    if word(obj(view).get("role")) not in _RESULTS:
        return message
    key = next(keys)
    if key not in changed:
        return message
    content, text = message.get("content"), changed[key]
    if view is not message:
        text = _rewritten(text_in(content), view["content"], text)
    return {**message, "content": with_text_in(content, text)}


def _rewritten(written: str, result: str, text: str) -> str:
    """A result inside a text, replaced by another text; the framework's words around it stay."""
    start, separator, end = written.removeprefix(RESULT).partition(result)
    return f"{RESULT}{start}{text}{end}" if separator else RESULT + text


def _choice(choice: Any) -> str | None:
    if choice is None or isinstance(choice, str):
        return choice
    return word(obj(obj(choice).get("function")).get("name")) or None
