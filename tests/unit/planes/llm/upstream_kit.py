"""Queries and files for tests of what answers a model call."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from holdfast.model.completion import Completion
from holdfast.planes.llm.codecs.anthropic import Anthropic
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.error_replies import Headers
from holdfast.planes.llm.codecs.openai_chat import OpenAIChat
from holdfast.planes.llm.sources.provider_hosts import AgentHeaders
from holdfast.planes.llm.sources.script import Script
from holdfast.planes.llm.sources.script_file import load_script
from holdfast.planes.llm.sources.source import ModelSource, PassedReply, Query, SourceReply, WrittenReply

PATHS = {"openai_chat": "/v1/chat/completions", "anthropic": "/v1/messages"}

Messages = list[dict[str, Any]]


def query(
    data: Any = None,
    *,
    codec: Codec | None = None,
    provider: str = "openai",
    method: str = "POST",
    path: str | None = None,
    headers: Headers = (),
    trial: str = "t1",
    base_url: str | None = None,
) -> Query:
    """A request as the gateway would bring it."""
    body = b"" if data is None else json.dumps(data).encode()
    path = path or (PATHS[codec.name] if codec else "/v1/models")
    asked = codec.read_request(path, data) if codec else None
    provider = codec.provider if codec else provider
    fields = AgentHeaders(tuple((name.encode(), value.encode()) for name, value in headers))
    return Query(provider, method, path, fields, body, trial, data, codec, asked, base_url)


def chat(
    *messages: Any,
    model: str = "gpt-4o",
    stream: bool = False,
    trial: str = "t1",
    headers: Headers = (),
    base_url: str | None = None,
    **more: Any,
) -> Query:
    """A Chat Completions request; a bare text is what the user says."""
    said = [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages]
    data = {"model": model, "messages": said, "stream": stream, **more}
    return query(data, codec=OpenAIChat(), trial=trial, headers=headers, base_url=base_url)


def message(text: str, *, model: str = "claude-sonnet-4", stream: bool = False, headers: Headers = ()) -> Query:
    """An Anthropic Messages request."""
    data = {"model": model, "max_tokens": 100, "stream": stream, "messages": [{"role": "user", "content": text}]}
    return query(data, codec=Anthropic(), headers=headers)


def called(name: str, result: Any, arguments: Any = None, id: str = "c1") -> Messages:
    """A tool call of the model's and its result, as Chat Completions has them."""
    function = {"name": name, "arguments": json.dumps(arguments or {})}
    text = result if isinstance(result, str) else json.dumps(result)
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": id, "content": text},
    ]


def tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}


def script(folder: Path, text: str, **more: Any) -> Script:
    """A scripted model whose rules are given as YAML."""
    file = folder / "model.yaml"
    file.write_text("replies:\n" + text, encoding="utf-8")
    return load_script(file, label="model.yaml", **more)


def ask(source: ModelSource, asked: Query) -> SourceReply:
    return asyncio.run(_answer(source, asked))


async def _answer(source: ModelSource, asked: Query) -> SourceReply:
    return await source.answer(asked)


def said(source: ModelSource, asked: Query) -> Completion:
    answered = ask(source, asked)
    assert isinstance(answered, WrittenReply), answered
    return answered.completion


async def read(answered: SourceReply) -> tuple[int, list[bytes]]:
    """The status and chunks of a reply that passes as bytes."""
    assert isinstance(answered, PassedReply), answered
    return answered.wire.status, [chunk async for chunk in answered.wire.stream_body()]


def passed(source: ModelSource, asked: Query) -> tuple[int, Any]:
    """The status and decoded body of a reply that passes as bytes."""

    async def run() -> tuple[int, Any]:
        status, chunks = await read(await source.answer(asked))
        return status, json.loads(b"".join(chunks))

    return asyncio.run(run())
