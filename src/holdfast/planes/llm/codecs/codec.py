"""A codec: one provider's wire format, read into and written from the neutral form. One file a format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.model.completion import Completion, Trouble
from holdfast.planes.llm.codecs import refusals, sse
from holdfast.planes.llm.codecs.loose import dump, obj
from holdfast.planes.llm.codecs.refusals import Refusal
from holdfast.planes.llm.codecs.reply_writer import ReplyWriter, play
from holdfast.planes.llm.codecs.request import ModelRequest
from holdfast.planes.llm.codecs.sse import StreamFrame
from holdfast.planes.llm.codecs.streamed_reply import NOTHING, FormatReader, OriginalStream
from holdfast.protocols.fault import Failed


class Codec(ABC):
    """One wire format."""

    name: str
    """openai_chat, openai_responses, anthropic, gemini, ollama_chat, ollama_generate."""
    provider: str
    """openai, anthropic, google, ollama."""
    stream_type = sse.TYPE
    """The content type of a streamed reply."""

    @abstractmethod
    def read_request(self, path: str, body: Mapping[str, Any]) -> ModelRequest:
        """The request. `path` is what follows the base URL, with its query. Never raises for odd bodies."""

    @abstractmethod
    def replace_results(self, body: Mapping[str, Any], changed: Mapping[str, str], failed: frozenset[str]) -> Any:
        """A copy of the request in which tool results (by key) have other texts; `failed` ones also say so."""

    @abstractmethod
    def reply(self, data: Any) -> Completion:
        """A plain reply, decoded from JSON."""

    @abstractmethod
    def reader(self, *, keep: bool = False) -> FormatReader:
        """For a streamed reply; `keep`: it may be changed and written again."""

    @abstractmethod
    def written(self, completion: Completion, asked: ModelRequest, like: dict[str, Any]) -> dict[str, Any]:
        """The plain reply as an object. `like` is the provider's own reply that it stands for, empty if there is none:
        ids, fields that the neutral form does not know and everything that was not changed stay as they are there."""

    @abstractmethod
    def writer(self, completion: Completion, asked: ModelRequest, like: OriginalStream) -> ReplyWriter:
        """Of a streamed reply; `like` is the provider's own stream that it stands for, as its reader kept it."""

    def body(self, completion: Completion, asked: ModelRequest, like: Any = None) -> bytes:
        """The plain reply, or the error that it ends in; `like` is the provider's own, if there is one."""
        for delta in completion.deltas:
            if isinstance(delta, Trouble):
                return dump(refusals.error(self.provider, delta.kind, delta.message))
        return dump(self.written(completion, asked, obj(like)))

    def frames(
        self, completion: Completion, asked: ModelRequest, like: OriginalStream = NOTHING
    ) -> Iterator[StreamFrame]:
        """The streamed reply, event by event, terminator included unless a Cut comes first."""
        return play(completion, self.writer(completion, asked, like), like)

    def delivered(self, completion: Completion) -> Completion:
        """What of a reply the format carries to the client."""
        return completion

    def refusal(self, failed: Failed) -> Refusal:
        """An error as this provider sends it; `failed.kind` says which where the status alone does not."""
        return refusals.refusal(self.provider, failed)
