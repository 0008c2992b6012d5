"""The providers' own libraries read what the codecs write, without a gateway between.

`test_sdk_clients.py` leads the same libraries through every fault. Here are the shapes that no scripted model there
has: several calls in one reply, streams in odd pieces, and errors down to the provider's own word for them.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import anthropic
import ollama
import openai
import pytest
from anthropic._exceptions import OverloadedError
from codec_clients import (
    Wire,
    anthropic_client,
    google_client,
    ollama_client,
    openai_client,
    plain,
    quietly,
    refused,
    stream,
)
from gateway_kit import Got, attempt
from sdk_voices import Chat, Google, Messages, OllamaChat, Responses

from codec_kit import CALLING, CODECS, SUNNY
from holdfast.model.completion import Completion, EmptyChunk, ErrorChunk, Text
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.reply_sender import split_oddly
from holdfast.protocols.fault import Failed

errors = quietly("google.genai.errors")


class Library(NamedTuple):
    """A client library, the codec that writes its format, and its words."""

    voice: type[Any]
    codec: Codec
    client: Callable[[Wire], Any]
    finish: str
    """The reason of a reply that ends in calls."""
    word: str
    """The attribute of an exception with the provider's own word."""

    def asked(self, wire: Wire, how: str = "plain") -> Got:
        voice = self.voice.__new__(self.voice)
        voice.client = self.client(wire)
        history: list[Any] = []
        voice.says(history, "Hello")
        return attempt(lambda got: getattr(voice, how)(got, history))


LIBRARIES = {
    "chat": Library(Chat, CODECS["openai_chat"], openai_client, "tool_calls", "code"),
    "responses": Library(Responses, CODECS["openai_responses"], openai_client, "completed", "code"),
    "anthropic": Library(Messages, CODECS["anthropic"], anthropic_client, "tool_use", "type"),
    "google": Library(Google, CODECS["gemini"], google_client, "STOP", "status"),
    "ollama": Library(OllamaChat, CODECS["ollama_chat"], ollama_client, "stop", "status_code"),
}
EVERY_LIBRARY = pytest.mark.parametrize("name", LIBRARIES)
HOLLOW = Completion((*CALLING.deltas[:2], EmptyChunk(), *CALLING.deltas[2:]), "model-1")
WIRES: dict[str, Callable[[Codec], Wire]] = {
    "plain": lambda codec: plain(codec, CALLING),
    "streamed": lambda codec: stream(codec, CALLING),
    "odd pieces": lambda codec: stream(codec, CALLING, lambda frames: split_oddly(frames, Random(3))),
    "an event without content": lambda codec: stream(codec, HOLLOW),
}


@pytest.mark.parametrize("kind", WIRES)
@EVERY_LIBRARY
def test_text_and_two_calls_are_read(name: str, kind: str) -> None:
    library = LIBRARIES[name]
    got = library.asked(WIRES[kind](library.codec), "plain" if kind == "plain" else "streamed")
    assert (got.error, got.text, got.finish, got.usage) == (None, "Let me look.", library.finish, (20, 9))
    assert [(call.name, call.read) for call in got.calls] == [("weather", {"city": "Zürich", "days": 3}), ("clock", {})]
    assert [call.id for call in got.calls] == ([""] * 2 if name == "ollama" else ["call_1", "call_2"])


ERRORS = {
    "rate limit": Failed("slow down", status=429, retry_after_s=2),
    "quota": Failed("none left", status=429, kind="quota"),
    "overloaded": Failed("busy", kind="overloaded"),
    "server error": Failed("broken", status=500),
    "context length": Failed("long", kind="context_length"),
    "auth": Failed("who", kind="auth"),
    "not found": Failed("no such model", status=404),
    "html": Failed("bad gateway", status=502, kind="html"),
}
_OPENAI = {
    "rate limit": (openai.RateLimitError, "rate_limit_exceeded"),
    "quota": (openai.RateLimitError, "insufficient_quota"),
    "overloaded": (openai.InternalServerError, "server_overloaded"),
    "server error": (openai.InternalServerError, "server_error"),
    "context length": (openai.BadRequestError, "context_length_exceeded"),
    "auth": (openai.AuthenticationError, "invalid_api_key"),
    "not found": (openai.NotFoundError, "model_not_found"),
    "html": (openai.InternalServerError, None),
}
RAISED: dict[str, dict[str, tuple[type[Exception], object]]] = {
    "chat": _OPENAI,
    "responses": _OPENAI,
    "anthropic": {
        "rate limit": (anthropic.RateLimitError, "rate_limit_error"),
        "quota": (anthropic.RateLimitError, "rate_limit_error"),
        "overloaded": (OverloadedError, "overloaded_error"),
        "server error": (anthropic.InternalServerError, "api_error"),
        "context length": (anthropic.BadRequestError, "invalid_request_error"),
        "auth": (anthropic.AuthenticationError, "authentication_error"),
        "not found": (anthropic.NotFoundError, "not_found_error"),
        "html": (anthropic.InternalServerError, None),
    },
    "google": {
        "rate limit": (errors.ClientError, "RESOURCE_EXHAUSTED"),
        "quota": (errors.ClientError, "RESOURCE_EXHAUSTED"),
        "overloaded": (errors.ServerError, "UNAVAILABLE"),
        "server error": (errors.ServerError, "INTERNAL"),
        "context length": (errors.ClientError, "INVALID_ARGUMENT"),
        "auth": (errors.ClientError, "UNAUTHENTICATED"),
        "not found": (errors.ClientError, "NOT_FOUND"),
        "html": (errors.ServerError, "Bad Gateway"),
    },
    "ollama": dict(
        zip(
            ERRORS, [(ollama.ResponseError, status) for status in (429, 429, 503, 500, 400, 401, 404, 502)], strict=True
        )
    ),
}


@pytest.mark.parametrize("kind", ERRORS)
@EVERY_LIBRARY
def test_errors_raise_as_in_production(name: str, kind: str) -> None:
    library, (raised, word) = LIBRARIES[name], RAISED[name][kind]
    error = library.asked(refused(library.codec.write_error_reply(ERRORS[kind]))).error
    assert (type(error), getattr(error, library.word)) == (raised, word)


@pytest.mark.parametrize("name", ["chat", "responses", "anthropic"])
def test_the_time_to_wait_is_a_header(name: str) -> None:
    library = LIBRARIES[name]
    waits = [
        library.asked(refused(library.codec.write_error_reply(ERRORS[kind]))).error for kind in ("rate limit", "quota")
    ]
    assert [error.response.headers.get("retry-after") for error in waits] == ["2", None]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "raised"),
    [
        ("chat", openai.APIError),
        ("anthropic", anthropic.APIStatusError),
        ("google", errors.ServerError),
        ("ollama", ollama.ResponseError),
    ],
)
@pytest.mark.parametrize("before", [(), (Text("half"),)])
def test_trouble_inside_a_stream_raises_where_it_is(
    name: str, raised: type[Exception], before: tuple[Text, ...]
) -> None:
    library = LIBRARIES[name]
    got = library.asked(stream(library.codec, Completion((*before, ErrorChunk("overloaded", "busy")))), "streamed")
    assert (type(got.error), got.text) == (raised, "half" if before else "")


def test_the_sequence_of_events_of_responses() -> None:
    client = openai_client(stream(CODECS["openai_responses"], CALLING))
    events = list(client.responses.create(model="model-1", input="Hello", stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    message = ["content_part.added", "output_text.delta", "output_text.done", "content_part.done", "output_item.done"]
    call = ["output_item.added", *["function_call_arguments.delta"] * 4, "function_call_arguments.done"]
    kinds = [event.type.removeprefix("response.") for event in events]
    assert kinds[:14] == ["created", "in_progress", "output_item.added", *message, *call]
    assert kinds[-2:] == ["output_item.done", "completed"]


def test_a_stream_of_responses_that_never_finished_has_no_last_event() -> None:
    client = openai_client(stream(CODECS["openai_responses"], Completion((Text("a"),))))
    *_, last = client.responses.create(model="model-1", input="Hello", stream=True)
    assert last.type == "response.output_item.done"


def test_usage_of_chat_is_streamed_only_on_request() -> None:
    body = {"model": "model-1", "messages": [{"role": "user", "content": "Hello"}], "stream": True}
    codec = CODECS["openai_chat"]
    frames = list(codec.write_frames(SUNNY, codec.read_request("/chat/completions", body)))
    assert not any(b"prompt_tokens" in frame for frame in frames if isinstance(frame, bytes))
    assert frames[-1] == b"data: [DONE]\n\n"
