"""The source of a model's reply: a provider, the user's server, a script or a recording. The gateway calls it.

A source returns the bytes of a reply as they arrive (PassedReply), so a call without a fault is never decoded. Or it
returns a reply in neutral form (WrittenReply), which the gateway writes in the agent's format.

UpstreamDown            no answer came and no fault caused it: the trial is an error, and the agent gets 502
|-- NoModel             there is no source: no key, no script, no recording
|-- WrongFormat         `models:` names a server that does not support the agent's format
|-- NoRule              a scripted model without a rule for this request
|-- BeyondScript        a rule of a scripted model that cannot provide what this request demands
`-- NotRecorded         a recording without a reply to this request
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from holdfast.errors import HarnessError
from holdfast.http1.heads import RawFields, find_header
from holdfast.model.completion import Completion
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.error_replies import Headers
from holdfast.planes.llm.codecs.request import ModelRequest
from holdfast.planes.llm.sources.provider_hosts import AgentHeaders, find_query_key

PLACEHOLDER_KEY = "holdfast-no-key"
"""The dummy key of an agent whose user has none: client libraries refuse to start without one."""

TRIALS_KEPT = 10_000
"""Maximum number of trials with counts, in case the end of a trial is never reported."""
READ_LIMIT = 64_000_000
"""Maximum size of a reply, in bytes."""

REMEDY = (
    "set a provider's key in the environment or in `models:`, "
    'or use a scripted model, `models: {"*": {script: model.yaml}}`, '
    "or replay a recording, `--replay FILE`"
)


class UpstreamDown(HarnessError):
    """No answer came from upstream, and no fault caused it."""

    default_code = "model-unavailable"

    def __init__(self, message: str, *, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        """Why a connection failed: dns, refused, tls, timeout, closed, protocol."""


class NoModel(UpstreamDown):
    """There is no source to call. The message names the three remedies."""

    default_code = "model-missing"

    def __init__(self, model: str, why: str) -> None:
        self.why = why
        super().__init__(f"no model is available for {model or 'this request'}: {why}. To fix it, {REMEDY}")


class WrongFormat(UpstreamDown):
    """The spec sends this model's calls to a server with another format."""

    default_code = "model-format"


class Query(Struct, frozen=True):
    """One request to a model API, as the agent sent it."""

    provider: str
    """The provider format: openai, anthropic, google, ollama."""
    method: str
    path: str
    """The part after the base URL, with its query."""
    headers: AgentHeaders
    body: bytes
    trial: str
    data: Any = None
    """The decoded body; None if it is not JSON."""
    codec: Codec | None = None
    """None for requests that are passed through: embeddings, lists of models."""
    request: ModelRequest | None = None
    base_url: str | None = None
    """The host that the agent itself called, if the request came through the proxy."""
    digest: str = ""
    """Digest of the body; empty if it was not computed yet."""

    @property
    def key(self) -> str:
        """The key that the request carries, in any place; empty if there is none."""
        return find_query_key(self.path) if self.headers.key is None else self.headers.key

    @property
    def stream(self) -> bool:
        """Whether the reply must be streamed."""
        return self.request is not None and self.request.stream

    @property
    def model(self) -> str:
        """The requested model, if the request names one."""
        if self.request is not None:
            return self.request.model
        model_name = self.data.get("model") if isinstance(self.data, dict) else None
        return model_name if isinstance(model_name, str) else ""


class Destination(Struct, frozen=True):
    """The address and headers with which a request reaches its server."""

    url: str
    headers: RawFields
    addresses: tuple[str | None, ...] = (None,)
    """The addresses to connect to, in order; None means whatever the name resolves to."""


class RawReply(ABC):
    """A reply as bytes. Reading raises UpstreamDown if it ends early."""

    def __init__(self, status: int, reason: str, headers: RawFields) -> None:
        self.status = status
        self.reason = reason
        self.headers = headers

    def get(self, name: str) -> str | None:
        """Return the first header with that name, in any case."""
        return find_header(self.headers, name)

    @abstractmethod
    def stream_body(self) -> AsyncIterator[bytes]:
        """Return the body as it arrives. The body can be read only once."""

    async def read(self, limit: int = READ_LIMIT) -> bytes:
        """Return the complete body."""
        body = bytearray()
        async for data in self.stream_body():
            body += data
            if len(body) > limit:
                self.abort()
                raise UpstreamDown(f"the model's reply has more than {limit} bytes", kind="protocol")
        return bytes(body)

    @abstractmethod
    def abort(self) -> None:
        """Abandon the rest."""


class PassedReply(Struct, frozen=True):
    """An upstream's own reply, in the agent's format."""

    wire: RawReply
    origin: str
    """The source of the answer, for messages: an address, a script, a recording."""
    is_scripted: bool = False
    """Whether a script replaced a provider: its limitations are never the agent's failure."""
    script: str = ""
    """For a scripted reply: the script's file and the line of its rule."""
    url: str = ""
    """The URL that was called, without its query; empty for a script or a recording."""
    billed: bool = True
    """Whether a provider was called, rather than a script or a recording."""


class WrittenReply(Struct, frozen=True):
    """A reply that must be written in the agent's format."""

    completion: Completion
    origin: str
    script: str = ""
    """For a scripted reply: the script's file and the line of its rule."""
    billed: bool = True
    """Whether a provider was called, rather than a script."""


SourceReply: TypeAlias = PassedReply | WrittenReply


class ModelSource(Protocol):
    """Answers model calls."""

    async def answer(self, query: Query) -> SourceReply:
        """Return the reply, whatever its status. Raises UpstreamDown if there is none."""


class Occurrences:
    """Counts events per trial: a request sent, a rule used."""

    def __init__(self) -> None:
        self._trials: OrderedDict[str, Counter[str | int]] = OrderedDict()

    def count_next(self, trial: str, key: str | int) -> int:
        """Count it once more and return the new count."""
        counts = self._trials.setdefault(trial, Counter())
        counts[key] += 1
        if len(self._trials) > TRIALS_KEPT:
            self._trials.popitem(last=False)
        return counts[key]

    def get_count(self, trial: str, key: str | int) -> int:
        return self._trials[trial][key] if trial in self._trials else 0

    def forget(self, trial: str) -> None:
        self._trials.pop(trial, None)


class StoredReply(RawReply):
    """A reply that is already complete. A stream is replayed as it was recorded, whatever it contains."""

    def __init__(self, status: int, headers: Headers, chunks: tuple[bytes, ...]) -> None:
        raw = tuple([(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers])
        super().__init__(status, "", raw)
        self.parts = chunks

    async def stream_body(self) -> AsyncIterator[bytes]:
        for chunk in self.parts:
            yield chunk

    def abort(self) -> None:
        self.parts = ()


def is_provider_failure(status: int, query: Query, *, billed: bool = True) -> bool:
    """Return whether a status that no fault caused is a failure of the provider or its key, not an answer to the
    agent.

    A 404 for a completion is such a failure: the provider has no such model or path. A script's own 404 is an answer.
    """
    if status == 404:
        return billed and query.codec is not None
    return status in (401, 403, 408, 429) or status >= 500
