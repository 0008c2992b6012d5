"""A codec reads one provider's wire format into the neutral form and writes it back. One file per format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.model.completion import Completion, ErrorChunk
from holdfast.planes.llm.codecs import refusals, sse
from holdfast.planes.llm.codecs.loose import as_dict, dump_json
from holdfast.planes.llm.codecs.refusals import Refusal
from holdfast.planes.llm.codecs.reply_writer import ReplyWriter, write_stream
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
        """Read a request. `path` is the part after the base URL, with its query. Never raises for malformed bodies."""

    @abstractmethod
    def replace_results(self, body: Mapping[str, Any], changed: Mapping[str, str], failed: frozenset[str]) -> Any:
        """Return a copy of the request with other texts in its tool results, by key; `failed` ones are marked as
        failed.
        """

    @abstractmethod
    def read_reply(self, data: Any) -> Completion:
        """Read a plain reply, decoded from JSON."""

    @abstractmethod
    def create_reader(self, *, keep: bool = False) -> FormatReader:
        """Return the reader for a streamed reply; `keep`: the reply may be changed and written again."""

    @abstractmethod
    def write_reply(self, completion: Completion, request: ModelRequest, like: dict[str, Any]) -> dict[str, Any]:
        """Return the plain reply as an object. `like` is the provider's reply that it replaces, or empty. Its ids, its
        fields that the neutral form does not support and all unchanged parts are kept."""

    @abstractmethod
    def create_writer(self, completion: Completion, request: ModelRequest, like: OriginalStream) -> ReplyWriter:
        """Return the writer for a streamed reply; `like` is the provider's stream that it replaces, as its reader kept
        it.
        """

    def write_body(self, completion: Completion, request: ModelRequest, like: Any = None) -> bytes:
        """Return the plain reply, or the error that it ends in; `like` is the provider's reply, if there is one."""
        for delta in completion.deltas:
            if isinstance(delta, ErrorChunk):
                return dump_json(refusals.write_error(self.provider, delta.kind, delta.message))
        return dump_json(self.write_reply(completion, request, as_dict(like)))

    def write_frames(
        self, completion: Completion, request: ModelRequest, like: OriginalStream = NOTHING
    ) -> Iterator[StreamFrame]:
        """Return the streamed reply, event by event, with the terminator unless a Cut comes first."""
        return write_stream(completion, self.create_writer(completion, request, like), like)

    def keep_deliverable(self, completion: Completion) -> Completion:
        """Return the parts of a reply that the format can carry to the client."""
        return completion

    def write_refusal(self, failed: Failed) -> Refusal:
        """Return an error as this provider sends it; `failed.kind` selects it if the status alone is ambiguous."""
        return refusals.write_refusal(self.provider, failed)
