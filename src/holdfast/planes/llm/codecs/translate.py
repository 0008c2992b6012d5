"""Any request as one of OpenAI's Chat Completions, so that any compatible server can answer any agent."""

from __future__ import annotations

from typing import Any

from holdfast.model.completion import ToolCall
from holdfast.planes.llm.codecs.gemini_request import lower_types
from holdfast.planes.llm.codecs.request import ChatMessage, ModelRequest, ToolDeclared

_OPEN = {"type": "object", "properties": {}}


def to_openai_chat(asked: ModelRequest, model: str) -> dict[str, Any]:
    """The request for another model. Only what the neutral form has is sent: no images, no provider's own options."""
    body: dict[str, Any] = {"model": model, "messages": [m for message in asked.messages for m in _messages(message)]}
    if asked.tools:
        body["tools"] = [_tool(tool) for tool in asked.tools]
        if asked.tool_choice is not None:
            body["tool_choice"] = _choice(asked.tool_choice)
    if asked.max_tokens is not None:
        body["max_tokens"] = asked.max_tokens
    if asked.temperature is not None:
        body["temperature"] = asked.temperature
    if asked.json_reply:
        body["response_format"] = {"type": "json_object"}
    if asked.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def _messages(message: ChatMessage) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [{"role": "tool", "tool_call_id": r.key, "content": r.text} for r in message.results]
    if not message.tool_calls:
        return [{"role": message.role, "content": message.text}]
    calls = [_call(call) for call in message.tool_calls]
    return [{"role": "assistant", "content": message.text or None, "tool_calls": calls}]


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _tool(tool: ToolDeclared) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    return {"type": "function", "function": {"name": tool.name, **described, "parameters": _schema(tool.parameters)}}


def _schema(schema: Any) -> Any:
    """A JSON Schema with its types in lower case: Google's are in upper case."""
    return lower_types(schema) if schema else _OPEN


def _choice(choice: str) -> Any:
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}
