"""A model that `models:` assigns to a server: with another address, key or name than the agent requested."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from holdfast.http1.client import Upstreams
from holdfast.model.model_spec import ModelSpec
from holdfast.model.shorten import shorten
from holdfast.planes.llm.codecs.gemini_request import lower_types
from holdfast.planes.llm.codecs.loose import dump_json, parse_json
from holdfast.planes.llm.codecs.openai_chat import OPENAI_CHAT
from holdfast.planes.llm.codecs.request import ChatMessage, ModelRequest, ToolDeclaration
from holdfast.planes.llm.sources.provider import send_request
from holdfast.planes.llm.sources.provider_hosts import (
    HOSTS,
    AgentHeaders,
    Key,
    build_key,
    find_named_base,
    find_own_key,
    join_url,
    remove_key,
)
from holdfast.planes.llm.sources.source import (
    PLACEHOLDER_KEY,
    Destination,
    PassedReply,
    Query,
    RawReply,
    SourceReply,
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
_MISSING_STATUSES = (404, 405, 501)


class AssignedServer:
    """Forwards calls to the server of an entry, translated to Chat Completions if the server uses another format."""

    def __init__(self, spec: ModelSpec, upstreams: Upstreams, environ: Mapping[str, str]) -> None:
        self._spec = spec
        self._upstreams = upstreams
        self._base = _find_base(spec, environ)
        self._key = _find_key(spec, environ)
        self._chat_only = False
        """Whether the server has rejected a request for its Responses API."""

    async def answer(self, query: Query) -> SourceReply:
        """Return the server's reply, as bytes if both sides use one format."""
        if not self._supports_format(query):
            return await self._translate(query)
        passed = await self._forward(query)
        if passed.wire.status not in _MISSING_STATUSES or not self._may_lack(query):
            return passed
        # The server has no Responses API, which only its first answer shows. From now on it gets Chat
        # Completions.
        passed.wire.abort()
        self._chat_only = True
        return await self._translate(query)

    def _supports_format(self, query: Query) -> bool:
        """Return whether the server accepts the request as the agent wrote it."""
        if self._chat_only and self._may_lack(query):
            return False
        if query.codec is None:
            return query.provider == self._spec.provider
        if query.codec.name == "openai_chat":
            return self._spec.provider in COMPATIBLE
        return query.codec.provider == self._spec.provider

    def _may_lack(self, query: Query) -> bool:
        """Return whether to translate to Chat Completions: many OpenAI-compatible servers support nothing else."""
        return query.codec is not None and query.codec.name == "openai_responses" and self._spec.base_url is not None

    async def find_destination(self, query: Query) -> Destination:
        """Return the target of a request that is forwarded unread."""
        if query.provider != self._spec.provider:
            raise WrongFormat(self._describe_mismatch(query))
        return self._build_destination(query, query.path)

    def _build_destination(self, query: Query, path: str) -> Destination:
        replaces = self._must_replace_key(query)
        url = join_url(self._spec.provider, self._base, remove_key(path) if replaces else path)
        return Destination(url, query.headers.to_upstream(self._key if replaces else None, strip=replaces))

    async def _forward(self, query: Query) -> PassedReply:
        path, body = query.path if query.codec is None else _PATHS.get(query.codec.name, query.path), query.body
        if self._spec.name and self._spec.name != query.model:
            path = _GEMINI_MODEL.sub(self._spec.name, path) if query.provider == "google" else path
            if isinstance(query.data, dict) and "model" in query.data:
                body = dump_json({**query.data, "model": self._spec.name})
        to = self._build_destination(query, path)
        return await send_request(self._upstreams, query.method, to.url, to.headers, body)

    async def _translate(self, query: Query) -> SourceReply:
        if query.request is None or query.codec is None or self._spec.provider not in COMPATIBLE:
            raise WrongFormat(self._describe_mismatch(query))
        body = dump_json(to_openai_chat(query.request, self._spec.name or query.request.model))
        url = join_url(self._spec.provider, self._base, _PATHS["openai_chat"])
        passed = await send_request(self._upstreams, "POST", url, _JSON.to_upstream(self._key), body)
        wire, chat = passed.wire, OPENAI_CHAT
        if wire.status != 200:
            return _write_error_reply(query, passed, await wire.read())
        if "event-stream" not in (wire.get("content-type") or ""):
            return WrittenReply(chat.read_reply(parse_reply(await wire.read(), passed.origin)), passed.origin)
        return WrittenReply(chat.read_stream(await wire.read()).build_completion(), passed.origin)

    def _must_replace_key(self, query: Query) -> bool:
        """Return whether the agent's own key must be replaced: it is sent only to the provider that it is for."""
        # The key of the agent belongs to the provider that it meant. Another server must not see it.
        elsewhere = self._spec.base_url is not None or query.provider != self._spec.provider
        return elsewhere or self._spec.api_key is not None or query.key in ("", PLACEHOLDER_KEY)

    def _describe_mismatch(self, query: Query) -> str:
        entry = f"models: {query.model or '*'} is served by {self._spec.provider}"
        request = f"{query.method} {query.path.partition('?')[0]}"
        return (
            f"{entry}, but the agent uses the format of {query.provider} ({request}): "
            f"Holdfast translates only completions, and only for servers of {' and '.join(COMPATIBLE)}"
        )


def _find_base(spec: ModelSpec, environ: Mapping[str, str]) -> str:
    base = (spec.base_url or find_named_base(spec.provider, environ) or HOSTS[spec.provider].public).rstrip("/")
    if spec.provider == "ollama":
        return base.removesuffix("/v1")
    if spec.provider == "openai" and not urlsplit(base).path:
        return f"{base}/v1"
    return base


def _find_key(spec: ModelSpec, environ: Mapping[str, str]) -> Key | None:
    if spec.api_key:
        return build_key(spec.provider, spec.api_key)
    return find_own_key(spec.provider, environ) if spec.base_url is None else None


def parse_reply(body: bytes, origin: str) -> Any:
    """Return a model's reply as a value; raise UpstreamDown if it is not JSON."""
    if (value := parse_json(body, _NO_JSON)) is _NO_JSON:
        text = shorten(body.decode("utf-8", "replace").strip(), 80)
        raise UpstreamDown(f"the reply of the model at {origin} is not JSON: {text}")
    return value


def _write_error_reply(query: Query, passed: PassedReply, body: bytes) -> PassedReply:
    """Return the server's error, in the format of the agent's client."""
    assert query.codec is not None
    wait = read_retry_after(passed.wire)
    refusal = query.codec.write_error_reply(
        Failed(read_error_message(body), status=passed.wire.status, retry_after_s=wait)
    )
    return PassedReply(StoredReply(refusal.status, refusal.headers, (refusal.body,)), passed.origin)


def read_retry_after(wire: RawReply) -> float | None:
    """Return the seconds to wait that a refusal states, if any."""
    later = wire.get("retry-after") or ""
    return float(later) if later.replace(".", "", 1).isdigit() else None


def read_error_message(body: bytes) -> str:
    """Return the message in an error body of any shape."""
    data = parse_json(body)
    error = data.get("error", data) if isinstance(data, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else body[:300].decode("utf-8", "replace")


_ANY_OBJECT = {"type": "object", "properties": {}}


def to_openai_chat(request: ModelRequest, model: str) -> dict[str, Any]:
    """Return the request for another model. Only the neutral form is sent: no images, no provider-specific options."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [m for message in request.messages for m in _write_messages(message)],
    }
    if request.tools:
        body["tools"] = [_write_tool(tool) for tool in request.tools]
        if request.tool_choice is not None:
            is_mode = request.tool_choice in ("auto", "none", "required")
            tool = {"type": "function", "function": {"name": request.tool_choice}}
            body["tool_choice"] = request.tool_choice if is_mode else tool
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.json_reply:
        body["response_format"] = {"type": "json_object"}
    if request.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def _write_messages(message: ChatMessage) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [{"role": "tool", "tool_call_id": r.key, "content": r.text} for r in message.results]
    if not message.tool_calls:
        return [{"role": message.role, "content": message.text}]
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.tool_calls
    ]
    return [{"role": "assistant", "content": message.text or None, "tool_calls": calls}]


def _write_tool(tool: ToolDeclaration) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    schema = lower_types(tool.parameters) if tool.parameters else _ANY_OBJECT  # Google's types are in upper case
    return {"type": "function", "function": {"name": tool.name, **described, "parameters": schema}}
