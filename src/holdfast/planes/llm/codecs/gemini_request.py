"""Requests of Google's generateContent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from holdfast.planes.llm.codecs.loose import items, json_text, number, obj, parse, text_in, whole, word
from holdfast.planes.llm.codecs.request import ChatMessage, Conversation, ModelRequest, ToolDeclared

_WRAPPERS = ("result", "output", "content", "error")
"""Keys under which a result that is not an object is sent."""
_MOST_CANDIDATES = 8
"""Google's maximum number of candidates."""


def read_request(path: str, body: Mapping[str, Any]) -> ModelRequest:
    """Reads a request; the model and whether it streams are in the path. Names may be in either case."""
    model, _, method = unquote(path.partition("?")[0]).rpartition(":")
    settings = _either(body, "generationConfig", "generation_config")
    modes = items(settings.get("responseModalities", settings.get("response_modalities")))
    wanted = (
        ("logprobs", settings.get("responseLogprobs", settings.get("response_logprobs")) is True),
        *((word(mode).lower(), word(mode).upper() != "TEXT") for mode in modes),
    )
    return ModelRequest(
        model.rpartition("/")[2],
        _messages(body),
        _declared(body),
        method.startswith("stream"),
        max_tokens=whole(settings.get("maxOutputTokens", settings.get("max_output_tokens"))),
        temperature=number(settings.get("temperature")),
        tool_choice=_choice(_either(body, "toolConfig", "tool_config")),
        json_reply="json" in word(settings.get("responseMimeType", settings.get("response_mime_type"))),
        copies=min(whole(settings.get("candidateCount", settings.get("candidate_count"))) or 1, _MOST_CANDIDATES),
        schema=_schema(settings),
        unscriptable=tuple([name for name, wants in wanted if wants]),
    )


def lower_types(node: Any) -> Any:
    """A JSON Schema with its types in lower case."""
    if isinstance(node, list):
        return [lower_types(item) for item in node]
    if not isinstance(node, dict):
        return node
    kind = node.get("type")
    lowered = {key: lower_types(value) for key, value in node.items()}
    return {**lowered, "type": kind.lower()} if isinstance(kind, str) else lowered


def _schema(settings: dict[str, Any]) -> dict[str, Any] | None:
    """Google's own schemas have their types in upper case."""
    plain = _either(settings, "responseJsonSchema", "response_json_schema")
    return plain or lower_types(_either(settings, "responseSchema", "response_schema")) or None


def replace_results(body: Mapping[str, Any], changed: Mapping[str, str], failed: frozenset[str]) -> dict[str, Any]:
    """The request with other texts in its tool results; failed ones become `error`."""
    if not isinstance(body.get("contents"), list):
        return dict(body)
    keys = iter([result.key for message in _messages(body) for result in message.results])
    return {**body, "contents": [_with_parts(content, keys, changed, failed) for content in body["contents"]]}


def _either(body: Mapping[str, Any], camel: str, snake: str) -> dict[str, Any]:
    return obj(body.get(camel, body.get(snake)))


def _messages(body: Mapping[str, Any]) -> tuple[ChatMessage, ...]:
    conversation = Conversation()
    system = body.get("systemInstruction", body.get("system_instruction"))
    if text := system if isinstance(system, str) else text_in(obj(system).get("parts")):
        conversation.say("system", text)
    contents = body.get("contents")
    for content in items(contents) if isinstance(contents, list) else [contents]:
        _take(content, conversation)
    return conversation.messages()


def _take(content: Any, conversation: Conversation) -> None:
    """Reads one message; results come before the text that is sent with them."""
    if isinstance(content, str):
        return conversation.say("user", content)
    parts = [obj(part) for part in items(obj(content).get("parts"))]
    answered = False
    for part in parts:
        if result := _either(part, "functionResponse", "function_response"):
            answered = True
            wrapper, value = _unwrapped(result)
            failed = wrapper == "error"
            conversation.result(word(result.get("id")), word(result.get("name")), json_text(value), failed)
    text = text_in([part for part in parts if not part.get("thought")])
    if parts and (text or not answered):
        conversation.say("assistant" if obj(content).get("role") == "model" else "user", text)
    for part in parts:
        if call := _either(part, "functionCall", "function_call"):
            call_arguments = call.get("args")
            arguments = "{}" if call_arguments is None else json_text(call_arguments)
            conversation.call(word(call.get("id")), word(call.get("name")), arguments)
    return None


def _unwrapped(result: dict[str, Any]) -> tuple[str, Any]:
    """The key that a result is wrapped in, if any, and the value inside."""
    response = obj(result.get("response"))
    sole = next(iter(response)) if len(response) == 1 else ""
    return (sole, response[sole]) if sole in _WRAPPERS else ("", response)


def _with_parts(content: Any, keys: Iterator[str], changed: Mapping[str, str], failed: frozenset[str]) -> Any:
    parts = items(obj(content).get("parts"))
    if not any(_response_key(part) for part in parts):
        return content
    return {**content, "parts": [_changed(part, keys, changed, failed) for part in parts]}


def _response_key(part: Any) -> str:
    return next((key for key in ("functionResponse", "function_response") if obj(obj(part).get(key))), "")


def _changed(part: Any, keys: Iterator[str], changed: Mapping[str, str], failed: frozenset[str]) -> Any:
    where = _response_key(part)
    if not where:
        return part
    key = next(keys)
    if key not in changed and key not in failed:
        return part
    result = part[where]
    wrapper, value = _unwrapped(result)
    text = changed.get(key, json_text(value))
    return {**part, where: {**result, "response": _response(text, wrapper, value, key in failed)}}


def _response(text: str, wrapper: str, value: Any, failed: bool) -> dict[str, Any]:
    """A result in the shape of the original, as far as the new text allows."""
    if failed:
        return {"error": text}
    new = text if isinstance(value, str) else parse(text, text)
    if wrapper:
        return {wrapper: new}
    return new if isinstance(new, dict) else {"result": new}


def _choice(config: dict[str, Any]) -> str | None:
    calling = _either(config, "functionCallingConfig", "function_calling_config")
    mode = word(calling.get("mode")).upper()
    names = items(calling.get("allowedFunctionNames", calling.get("allowed_function_names")))
    if mode in ("ANY", "VALIDATED") and len(names) == 1:
        return word(names[0]) or None
    return {"AUTO": "auto", "VALIDATED": "auto", "NONE": "none", "ANY": "required"}.get(mode)


def _declared(body: Mapping[str, Any]) -> tuple[ToolDeclared, ...]:
    tools = []
    for tool in map(obj, items(body.get("tools"))):
        for function in map(obj, items(tool.get("functionDeclarations", tool.get("function_declarations")))):
            keys = ("parametersJsonSchema", "parameters_json_schema", "parameters")
            schema = next((obj(function[key]) for key in keys if key in function), {})
            if name := word(function.get("name")):
                tools.append(ToolDeclared(name, word(function.get("description")), schema))
    return tuple(tools)
