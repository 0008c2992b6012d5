"""A question of our own to a model: written in each provider's format."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from holdfast.planes.llm.codecs.codec import Headers

ANSWER_TOKENS = 2_048
"""What an answer may take, where a provider wants to be told: room for a rating and its reason."""
_ANTHROPIC_VERSION = "2023-06-01"


class Question(Struct, frozen=True):
    """What is asked; no tools, no stream."""

    model: str
    system: str
    prompt: str
    temperature: float | None = 0.0
    """None: it is not sent."""
    json: bool = True
    """The reply is asked to be a JSON object, where the format has a word for that."""
    apart: bool = True
    """The system's text is a message of its own."""


class Letter(Struct, frozen=True):
    """A question as a provider wants it."""

    path: str
    body: dict[str, Any]
    headers: Headers = (("content-type", "application/json"),)


def written(provider: str, question: Question) -> Letter:
    """The request in the format of openai, anthropic, google or ollama."""
    return _WRITERS[provider](question)


def _openai(asked: Question) -> Letter:
    body: dict[str, Any] = {"model": asked.model, "messages": _messages(asked), "stream": False}
    if asked.temperature is not None:
        body["temperature"] = asked.temperature
    if asked.json:
        body["response_format"] = {"type": "json_object"}
    return Letter("/v1/chat/completions", body)


def _anthropic(asked: Question) -> Letter:
    body: dict[str, Any] = {
        "model": asked.model,
        "max_tokens": ANSWER_TOKENS,
        "system": asked.system,
        "messages": [{"role": "user", "content": asked.prompt}],
    }
    if asked.temperature is not None:
        body["temperature"] = min(asked.temperature, 1.0)  # its scale ends there
    version = ("anthropic-version", _ANTHROPIC_VERSION)
    return Letter("/v1/messages", body, (("content-type", "application/json"), version))


def _google(asked: Question) -> Letter:
    config: dict[str, Any] = {} if asked.temperature is None else {"temperature": asked.temperature}
    if asked.json:
        config["responseMimeType"] = "application/json"
    body = {
        "systemInstruction": {"parts": [{"text": asked.system}]},
        "contents": [{"role": "user", "parts": [{"text": asked.prompt}]}],
        "generationConfig": config,
    }
    return Letter(f"/v1beta/models/{asked.model.removeprefix('models/')}:generateContent", body)


def _ollama(asked: Question) -> Letter:
    body: dict[str, Any] = {"model": asked.model, "messages": _messages(asked), "stream": False}
    if asked.temperature is not None:
        body["options"] = {"temperature": asked.temperature}
    if asked.json:
        body["format"] = "json"
    return Letter("/api/chat", body)


def _messages(asked: Question) -> list[dict[str, str]]:
    if not asked.apart:
        return [{"role": "user", "content": f"{asked.system}\n\n{asked.prompt}"}]
    return [{"role": "system", "content": asked.system}, {"role": "user", "content": asked.prompt}]


_WRITERS = {"openai": _openai, "anthropic": _anthropic, "google": _google, "ollama": _ollama}
