"""A model that `models:` assigns to a server: with another address, key or name than the agent requested."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from holdfast.http1.client import Upstreams
from holdfast.model.completion import ToolCall
from holdfast.model.model_spec import ModelSpec
from holdfast.model.shorten import shorten
from holdfast.planes.llm.codecs.gemini_request import lower_types
from holdfast.planes.llm.codecs.loose import dump, parse
from holdfast.planes.llm.codecs.request import ChatMessage, ModelRequest, ToolDeclared
from holdfast.planes.llm.sources.provider import send
from holdfast.planes.llm.sources.provider_hosts import (
    HOSTS,
    AgentHeaders,
    Key,
    join,
    key_for,
    named_base,
    own_key,
    without_key,
)
from holdfast.planes.llm.sources.source import (
    PLACEHOLDER_KEY,
    Answered,
    Destination,
    PassedReply,
    Query,
    RawReply,
    StoredReply,
    UpstreamDown,
    WrittenReply,
    WrongFormat,
)
from holdfast.protocols.fault import Failed

COMPATIBLE = ("openai", "ollama")
"""Providers whose servers support OpenAI's Chat Completions."""

_PATHS = {"openai_chat": "/v1/chat/completions", "openai_responses": "/v1/responses"}
_NO_JSON = object()
_GEMINI_MODEL = re.compile(r"(?<=/models/)[^/:?]+")
_JSON = AgentHeaders(((b"content-type", b"application/json"),))
_NOT_THERE = (404, 405, 501)


class Assigned:
    """Forwards calls to the server of an entry, translated to Chat Completions if it uses another format."""

    def __init__(self, spec: ModelSpec, upstreams: Upstreams, environ: Mapping[str, str]) -> None:
        self._spec = spec
        self._upstreams = upstreams
        self._base = _base(spec, environ)
        self._key = _key(spec, environ)
        self._chat_only = False
        """Whether the server has said that it has no Responses API."""

    async def answer(self, query: Query) -> Answered:
        """The server's reply, as bytes if both sides use one format."""
        if not self._speaks(query):
            return await self._translated(query)
        passed = await self._passed(query)
        if passed.wire.status not in _NOT_THERE or not self._may_lack(query):
            return passed
        passed.wire.abort()
        self._chat_only = True
        return await self._translated(query)

    def _speaks(self, query: Query) -> bool:
        """Whether the server accepts the request as the agent wrote it."""
        if self._chat_only and self._may_lack(query):
            return False
        if query.codec is None:
            return query.provider == self._spec.provider
        if query.codec.name == "openai_chat":
            return self._spec.provider in COMPATIBLE
        return query.codec.provider == self._spec.provider

    def _may_lack(self, query: Query) -> bool:
        """Whether to translate to Chat Completions: many OpenAI-compatible servers support nothing else."""
        return query.codec is not None and query.codec.name == "openai_responses" and self._spec.base_url is not None

    async def destination(self, query: Query) -> Destination:
        """The target of a request that is forwarded unread."""
        if query.provider != self._spec.provider:
            raise WrongFormat(self._mismatch(query))
        replaces = self._replaces_key(query)
        path = without_key(query.path) if replaces else query.path
        headers = query.headers.onward(self._key if replaces else None, strip=replaces)
        return Destination(join(self._spec.provider, self._base, path), headers)

    async def _passed(self, query: Query) -> PassedReply:
        replaces = self._replaces_key(query)
        path = without_key(query.path) if replaces else query.path
        if query.codec is not None:
            path = _PATHS.get(query.codec.name, path)
        body = query.body
        if self._spec.name and self._spec.name != query.model:
            path = _GEMINI_MODEL.sub(self._spec.name, path) if query.provider == "google" else path
            if isinstance(query.data, dict) and "model" in query.data:
                body = dump({**query.data, "model": self._spec.name})
        headers = query.headers.onward(self._key if replaces else None, strip=replaces)
        return await send(self._upstreams, query.method, join(self._spec.provider, self._base, path), headers, body)

    async def _translated(self, query: Query) -> Answered:
        if query.asked is None or query.codec is None or self._spec.provider not in COMPATIBLE:
            raise WrongFormat(self._mismatch(query))
        from holdfast.planes.llm.codecs.formats import find

        body = dump(to_openai_chat(query.asked, self._spec.name or query.asked.model))
        url = join(self._spec.provider, self._base, _PATHS["openai_chat"])
        passed = await send(self._upstreams, "POST", url, _JSON.onward(self._key), body)
        wire, route = passed.wire, find("POST", _PATHS["openai_chat"])
        assert route is not None
        assert route.codec is not None
        chat = route.codec
        if wire.status != 200:
            return _refused(query, passed, await wire.read())
        if "event-stream" not in (wire.get("content-type") or ""):
            return WrittenReply(chat.reply(json_reply(await wire.read(), passed.origin)), passed.origin)
        reader = chat.reader()
        async for chunk in wire.chunks():
            reader.feed(chunk)
        return WrittenReply(reader.completion(), passed.origin)

    def _replaces_key(self, query: Query) -> bool:
        """Whether the agent's own key must be replaced: it is sent only to the provider that it is for."""
        elsewhere = self._spec.base_url is not None or query.provider != self._spec.provider
        return elsewhere or self._spec.api_key is not None or query.key in ("", PLACEHOLDER_KEY)

    def _mismatch(self, query: Query) -> str:
        entry = f"models: {query.model or '*'} is served by {self._spec.provider}"
        request = f"{query.method} {query.path.partition('?')[0]}"
        return (
            f"{entry}, but the agent uses the format of {query.provider} ({request}): "
            f"only servers of {' and '.join(COMPATIBLE)} can be asked in another format, and only for completions"
        )


def _base(spec: ModelSpec, environ: Mapping[str, str]) -> str:
    base = (spec.base_url or named_base(spec.provider, environ) or HOSTS[spec.provider].public).rstrip("/")
    if spec.provider == "ollama":
        return base.removesuffix("/v1")
    if spec.provider == "openai" and not urlsplit(base).path:
        return f"{base}/v1"
    return base


def _key(spec: ModelSpec, environ: Mapping[str, str]) -> Key | None:
    if spec.api_key:
        return key_for(spec.provider, spec.api_key)
    return own_key(spec.provider, environ) if spec.base_url is None else None


def json_reply(body: bytes, origin: str) -> Any:
    """A model's reply as a value; raises UpstreamDown if it is not JSON."""
    if (value := parse(body, _NO_JSON)) is _NO_JSON:
        text = shorten(body.decode("utf-8", "replace").strip(), 80)
        raise UpstreamDown(f"the model at {origin} gave no answer: its reply is not JSON: {text}")
    return value


def _refused(query: Query, passed: PassedReply, body: bytes) -> PassedReply:
    """The server's error, in the format of the agent's client."""
    assert query.codec is not None
    wait = retry_after(passed.wire)
    refusal = query.codec.refusal(Failed(error_message(body), status=passed.wire.status, retry_after_s=wait))
    return PassedReply(StoredReply(refusal.status, refusal.headers, (refusal.body,)), passed.origin)


def retry_after(wire: RawReply) -> float | None:
    """The seconds to wait that a refusal states, if any."""
    later = wire.get("retry-after") or ""
    return float(later) if later.replace(".", "", 1).isdigit() else None


def error_message(body: bytes) -> str:
    """The message in an error body of any shape."""
    data = parse(body)
    error = data.get("error", data) if isinstance(data, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else body[:300].decode("utf-8", "replace")


_OPEN = {"type": "object", "properties": {}}


def to_openai_chat(request: ModelRequest, model: str) -> dict[str, Any]:
    """The request for another model. Only the neutral form is sent: no images, no provider-specific options."""
    body: dict[str, Any] = {"model": model, "messages": [m for message in request.messages for m in _messages(message)]}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.tool_choice is not None:
            body["tool_choice"] = _choice(request.tool_choice)
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.json_reply:
        body["response_format"] = {"type": "json_object"}
    if request.stream:
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
    schema = lower_types(tool.parameters) if tool.parameters else _OPEN  # Google's types are in upper case
    return {"type": "function", "function": {"name": tool.name, **described, "parameters": schema}}


def _choice(choice: str) -> Any:
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}
