"""The providers' real client libraries, answered by what a codec writes: no socket, all of their parsing."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import httpx
import httpx2

from codec_kit import ASKED
from holdfast.model.completion import Completion
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.error_replies import ErrorReply


class Wire:
    """Answers every request in the same way and keeps what was asked."""

    def __init__(self, status: int, headers: dict[str, str], chunks: Iterable[bytes]) -> None:
        self._answer = status, headers, list(chunks)
        self.path = ""
        self.body: dict[str, Any] = {}
        self.requests = 0

    def answers(self, library: Any) -> Any:
        """The transport of an HTTP library."""

        def handle(request: Any) -> Any:
            self.requests += 1
            self.path = request.url.raw_path.decode()
            self.body = json.loads(request.read() or b"{}")
            status, headers, chunks = self._answer
            return library.Response(status, headers=headers, content=iter(chunks))

        return library.MockTransport(handle)


def plain(codec: Codec, completion: Completion) -> Wire:
    return Wire(200, {"content-type": "application/json"}, [codec.write_body(completion, ASKED)])


def stream(codec: Codec, completion: Completion, through: Callable[[Any], Any] = lambda frames: frames) -> Wire:
    frames = through(codec.write_frames(completion, ASKED))
    return Wire(200, {"content-type": codec.stream_type}, [frame for frame in frames if isinstance(frame, bytes)])


def refused(refusal: ErrorReply) -> Wire:
    return Wire(refusal.status, dict(refusal.headers), [refusal.body])


def quietly(name: str) -> Any:
    """A library whose own code warns as it is compiled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module(name)


def openai_client(wire: Wire) -> Any:
    import openai

    http = httpx2.Client(transport=wire.answers(httpx2))
    return openai.OpenAI(api_key="k", base_url="http://127.0.0.1/v1", http_client=http, max_retries=0)


def anthropic_client(wire: Wire) -> Any:
    import anthropic

    http = httpx2.Client(transport=wire.answers(httpx2))
    return anthropic.Anthropic(api_key="k", base_url="http://127.0.0.1", http_client=http, max_retries=0)


def google_client(wire: Wire) -> Any:
    genai = quietly("google.genai")
    http = httpx.Client(transport=wire.answers(httpx))
    options = genai.types.HttpOptions(base_url="http://127.0.0.1", httpx_client=http)
    return genai.Client(api_key="k", http_options=options)


def ollama_client(wire: Wire) -> Any:
    import ollama

    return ollama.Client("http://127.0.0.1", transport=wire.answers(httpx))
