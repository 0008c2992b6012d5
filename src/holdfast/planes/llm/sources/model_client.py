"""Holdfast's own model calls: sends one question to the model's source, and returns its text."""

from __future__ import annotations

from asyncio import sleep
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from holdfast.model.completion import Completion, ErrorChunk, Pause
from holdfast.model.shorten import shorten
from holdfast.planes.llm.codecs.anthropic import ANTHROPIC
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.gemini import GEMINI
from holdfast.planes.llm.codecs.loose import dump_json
from holdfast.planes.llm.codecs.ollama import OLLAMA_CHAT
from holdfast.planes.llm.codecs.openai_chat import OPENAI_CHAT
from holdfast.planes.llm.codecs.request import ChatMessage, ModelRequest
from holdfast.planes.llm.sources.assigned import parse_reply, read_error_message, read_retry_after, to_openai_chat
from holdfast.planes.llm.sources.provider_hosts import AgentHeaders
from holdfast.planes.llm.sources.source import ModelSource, Query, SourceReply, UpstreamDown, WrittenReply

REPLY_READ = 4_000_000
"""Maximum size of a reply, in bytes: a rating has a few hundred."""
_BAD_REQUEST = (400, 422)
_CODECS: Mapping[str, Codec] = {
    "openai": OPENAI_CHAT,
    "anthropic": ANTHROPIC,
    "google": GEMINI,
    "ollama": OLLAMA_CHAT,
}


class ModelRefused(UpstreamDown):
    """The model's server answered with an error."""

    default_code = "model-refused"

    def __init__(self, origin: str, status: int, explanation: str, retry_after_s: float | None = None) -> None:
        """`explanation`: what the server says, in its own words."""
        super().__init__(f"the model at {origin} answered with status {status}: {explanation}")
        self.status = status
        self.explanation = explanation
        self.retry_after_s = retry_after_s


def drop_rejected(question: Question, refused: ModelRefused) -> tuple[Question, str] | None:
    """Return the question without the settings that the model rejects, and a note; None if that was not the reason."""
    if refused.status not in _BAD_REQUEST:
        return None
    why = refused.explanation.lower()  # the address of the server may contain any of these words
    if question.temperature is not None and "temperature" in why:
        return replace(question, temperature=None), "the model rejects a temperature: sent without one"
    if question.json and any(word in why for word in ("response_format", "responsemimetype", "json", "format")):
        return replace(question, json=False), "the model has no JSON mode: sent without it"
    if question.apart and "system" in why:
        return replace(question, apart=False), "the model rejects a system message: its text was put before the prompt"
    return None


async def ask_model(source: ModelSource, provider: str, question: Question, conversation: str) -> tuple[str, str]:
    """Return the text of the reply, and where it came from. Raises ModelRefused if the server rejects the question,
    UpstreamDown if no reply can be read.

    `conversation` distinguishes questions: a script counts used rules for each.
    """
    (path, body), codec = _WRITERS[provider](question), _CODECS[provider]
    headers = AgentHeaders((_JSON, _ANTHROPIC_VERSION) if provider == "anthropic" else (_JSON,))
    request = codec.read_request(path, body)
    query = Query(provider, "POST", path, headers, dump_json(body), conversation, body, codec, request)
    completion, origin = await _read_completion(await source.answer(query), codec)
    for delta in completion.deltas:
        if isinstance(delta, ErrorChunk):
            raise UpstreamDown(f"the model at {origin} stopped before the end: {shorten(delta.message)}")
        if isinstance(delta, Pause):
            await sleep(delta.ms / 1000)
    return completion.text, origin


async def _read_completion(answered: SourceReply, codec: Codec) -> tuple[Completion, str]:
    if isinstance(answered, WrittenReply):
        return answered.completion, answered.origin
    wire, origin = answered.wire, answered.origin
    body = await wire.read(REPLY_READ)
    if wire.status != 200:
        explanation = shorten(read_error_message(body).strip()) or wire.reason
        raise ModelRefused(origin, wire.status, explanation, read_retry_after(wire))
    return codec.read_reply(parse_reply(body, origin)), origin


ANSWER_TOKENS = 2_048
"""The maximum length of an answer, for providers that require one: enough for a rating and its reason."""
_JSON = (b"content-type", b"application/json")
_ANTHROPIC_VERSION = (b"anthropic-version", b"2023-06-01")


class Question(Struct, frozen=True):
    """A question; without tools and streaming."""

    model: str
    system: str
    prompt: str
    temperature: float | None = 0.0
    """None: it is not sent."""
    json: bool = True
    """Whether to request a JSON object, if the format supports that."""
    apart: bool = True
    """Whether the system text is a separate message."""


def _write_openai(question: Question) -> tuple[str, dict[str, Any]]:
    request = ModelRequest(
        question.model,
        tuple([ChatMessage(role, text) for role, text in _list_messages(question)]),
        temperature=question.temperature,
        json_reply=question.json,
    )
    return "/v1/chat/completions", {**to_openai_chat(request, question.model), "stream": False}


def _write_anthropic(question: Question) -> tuple[str, dict[str, Any]]:
    body: dict[str, Any] = {
        "model": question.model,
        "max_tokens": ANSWER_TOKENS,
        "system": question.system,
        "messages": [{"role": "user", "content": question.prompt}],
    }
    if question.temperature is not None:
        body["temperature"] = min(question.temperature, 1.0)  # its scale ends there
    return "/v1/messages", body


def _write_google(question: Question) -> tuple[str, dict[str, Any]]:
    config: dict[str, Any] = {} if question.temperature is None else {"temperature": question.temperature}
    if question.json:
        config["responseMimeType"] = "application/json"
    body = {
        "systemInstruction": {"parts": [{"text": question.system}]},
        "contents": [{"role": "user", "parts": [{"text": question.prompt}]}],
        "generationConfig": config,
    }
    return f"/v1beta/models/{question.model.removeprefix('models/')}:generateContent", body


def _write_ollama(question: Question) -> tuple[str, dict[str, Any]]:
    messages = [{"role": role, "content": text} for role, text in _list_messages(question)]
    body: dict[str, Any] = {"model": question.model, "messages": messages, "stream": False}
    if question.temperature is not None:
        body["options"] = {"temperature": question.temperature}
    if question.json:
        body["format"] = "json"
    return "/api/chat", body


def _list_messages(question: Question) -> list[tuple[Literal["system", "user"], str]]:
    if not question.apart:
        return [("user", f"{question.system}\n\n{question.prompt}")]
    return [("system", question.system), ("user", question.prompt)]


_WRITERS = {"openai": _write_openai, "anthropic": _write_anthropic, "google": _write_google, "ollama": _write_ollama}
"""Return a question as the path and body of a request in the format of a provider."""
