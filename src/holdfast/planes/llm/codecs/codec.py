"""A codec: one provider's wire format, read into and written from the neutral form. One file a format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from holdfast.model.completion import Completion, Cut, Pause
from holdfast.planes.llm.codecs.asides import NOTHING, Like
from holdfast.planes.llm.codecs.request import ModelRequest
from holdfast.protocols.fault import Failed

Headers: TypeAlias = tuple[tuple[str, str], ...]

StreamFrame: TypeAlias = bytes | Pause | Cut
"""What is sent next: bytes, nothing for a while, or never anything again."""


class Refusal(Struct, frozen=True):
    """An error reply in a provider's own shape."""

    status: int
    headers: Headers
    body: bytes


class StreamReader(Protocol):
    """Reads a streamed reply as it passes. Never raises: what cannot be read is left out."""

    def feed(self, data: bytes) -> None: ...

    def completion(self) -> Completion:
        """What has come so far; one Text for each chunk of text, in order."""
        ...

    def like(self) -> Like:
        """What the stream says beside that: all of it, if the reader was made to keep it, else its first event."""
        ...


class Codec(Protocol):
    """One wire format."""

    name: str
    """openai_chat, openai_responses, anthropic, gemini, ollama_chat, ollama_generate."""
    provider: str
    """openai, anthropic, google, ollama."""
    stream_type: str
    """The content type of a streamed reply."""

    def asked(self, path: str, body: Mapping[str, Any]) -> ModelRequest:
        """The request. `path` is what follows the base URL, with its query. Never raises for odd bodies."""
        ...

    def with_results(self, body: Mapping[str, Any], changed: Mapping[str, str], failed: frozenset[str]) -> Any:
        """A copy of the request in which tool results (by key) have other texts; `failed` ones also say so."""
        ...

    def reply(self, data: Any) -> Completion:
        """A plain reply, decoded from JSON."""
        ...

    def reader(self, *, keep: bool = False) -> StreamReader:
        """For a streamed reply; `keep`: it may be changed and written again."""
        ...

    def body(self, completion: Completion, asked: ModelRequest, like: Any = None) -> bytes:
        """The plain reply. `like` is the provider's own reply that it stands for, if there is one: ids, fields that the
        neutral form does not know and everything that was not changed stay as they are there."""
        ...

    def frames(self, completion: Completion, asked: ModelRequest, like: Like = NOTHING) -> Iterator[StreamFrame]:
        """The streamed reply, event by event, terminator included unless a Cut comes first. `like` is the provider's
        own stream that it stands for, as its reader kept it."""
        ...

    def delivered(self, completion: Completion) -> Completion:
        """What of a reply the format carries to the client."""
        ...

    def refusal(self, failed: Failed) -> Refusal:
        """An error as this provider sends it; `failed.kind` says which where the status alone does not."""
        ...
