"""What answers a model call: a provider, a server of the user's, a script or a recording. The gateway asks here.

A Source answers with the bytes of a reply as they come (Passed), so that an untouched call is never decoded, or with a
reply in neutral form (Said), which the gateway writes in the format that the agent speaks.

UpstreamDown            no answer came, and no fault caused it: the trial is an error, the agent gets 502
|-- NoModel             nothing is there to ask: no key, no script, no recording
|-- WrongFormat         `models:` names a server that cannot be asked in the agent's format
|-- NoRule              a scripted model without a rule for this request
|-- BeyondScript        a rule of a scripted model that cannot give what this request asks for
`-- NotRecorded         a recording without a reply to this request
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import AsyncIterator
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from holdfast.errors import HarnessError
from holdfast.http1.heads import RawFields
from holdfast.model.completion import Completion
from holdfast.planes.llm.codecs.codec import Codec
from holdfast.planes.llm.codecs.refusals import Headers
from holdfast.planes.llm.codecs.request import ModelRequest
from holdfast.planes.llm.sources.provider_hosts import AgentHeaders, key_in_query

PLACEHOLDER_KEY = "holdfast-no-key"
"""What an agent is given as its key where the user has none: client libraries refuse to start without one."""

TRIALS_KEPT = 10_000
"""Trials that are counted for, should nobody say that they are over."""
READ_LIMIT = 64_000_000
"""Bytes of a reply that are read."""

WAYS = (
    "give a provider's key in the environment or in `models:`; "
    'or a scripted model, `models: {"*": {script: model.yaml}}`; '
    "or a recording, `--replay FILE`"
)


class UpstreamDown(HarnessError):
    """No answer came from upstream, and no fault caused it."""

    default_code = "model-unavailable"

    def __init__(self, message: str, *, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        """Of a failed connection: dns, refused, tls, timeout, closed, protocol."""


class NoModel(UpstreamDown):
    """Nothing is there to ask. The text names the three ways out."""

    default_code = "model-missing"

    def __init__(self, model: str, why: str) -> None:
        self.why = why
        super().__init__(f"no model answers for {model or 'this request'}: {why}. Three ways: {WAYS}")


class WrongFormat(UpstreamDown):
    """The spec sends this model's calls to a server that speaks another format."""

    default_code = "model-format"


class Query(Struct, frozen=True):
    """One request to a model's API, as the agent sent it."""

    provider: str
    """Whose format it speaks: openai, anthropic, google, ollama."""
    method: str
    path: str
    """What follows the base URL, with its query."""
    headers: AgentHeaders
    body: bytes
    trial: str
    data: Any = None
    """The body, decoded; None if it is not JSON."""
    codec: Codec | None = None
    """None for what is passed through: embeddings, lists of models."""
    asked: ModelRequest | None = None
    base_url: str | None = None
    """Where the agent itself would have sent it, if it came through the proxy."""
    digest: str = ""
    """Of the body; empty if nobody has taken it yet."""

    @property
    def key(self) -> str:
        """The key that it carries, in whatever place; empty if none."""
        return key_in_query(self.path) if self.headers.key is None else self.headers.key

    @property
    def stream(self) -> bool:
        """Whether the reply is to be streamed."""
        return self.asked is not None and self.asked.stream

    @property
    def model(self) -> str:
        """The model asked for, if the request says."""
        if self.asked is not None:
            return self.asked.model
        named = self.data.get("model") if isinstance(self.data, dict) else None
        return named if isinstance(named, str) else ""


class Destination(Struct, frozen=True):
    """How a request reaches its server."""

    url: str
    headers: RawFields
    addresses: tuple[str | None, ...] = (None,)
    """Where to connect to, in order; None is whatever the name resolves to."""


class RawReply(Protocol):
    """A reply as bytes. Reading raises UpstreamDown where it breaks off."""

    @property
    def status(self) -> int: ...

    @property
    def reason(self) -> str: ...

    @property
    def headers(self) -> RawFields: ...

    def get(self, name: str) -> str | None: ...

    def arrived(self) -> bytes | None:
        """All of a body of declared length, if it has come already; None if it is to be read as it comes."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes. It is read once, by one of these three."""
        ...

    async def read(self, limit: int = READ_LIMIT) -> bytes: ...

    def abort(self) -> None:
        """Gives the rest up."""
        ...


class PassedReply(Struct, frozen=True):
    """An upstream's own reply, in the agent's format."""

    wire: RawReply
    origin: str
    """Who answered, for messages: an address, a script, a recording."""
    stand_in: bool = False
    """A script answered in a provider's place: what it cannot do is never the agent's failure."""
    script: str = ""
    """Of a scripted reply: the script's file and the line of its rule."""
    url: str = ""
    """Where it was asked, without its query; empty for a script or a recording."""
    billed: bool = True
    """A provider was asked; not a script or a recording."""


class WrittenReply(Struct, frozen=True):
    """A reply to be written in the agent's format."""

    completion: Completion
    origin: str
    script: str = ""
    """Of a scripted reply: the script's file and the line of its rule."""
    billed: bool = True
    """A provider was asked; not a script."""


Answered: TypeAlias = PassedReply | WrittenReply


class ModelSource(Protocol):
    """Answers model calls."""

    async def answer(self, query: Query) -> Answered:
        """The reply, whatever its status. Raises UpstreamDown if there is none."""
        ...


class Occurrences:
    """How often each trial has had each thing: a request sent, a rule used."""

    def __init__(self) -> None:
        self._trials: OrderedDict[str, Counter[str | int]] = OrderedDict()

    def next(self, trial: str, key: str | int) -> int:
        """Counts it once more; how often it was by now."""
        counts = self._trials.setdefault(trial, Counter())
        counts[key] += 1
        if len(self._trials) > TRIALS_KEPT:
            self._trials.popitem(last=False)
        return counts[key]

    def so_far(self, trial: str, key: str | int) -> int:
        return self._trials[trial][key] if trial in self._trials else 0

    def forget(self, trial: str) -> None:
        self._trials.pop(trial, None)


class StoredReply:
    """A reply that is there already."""

    def __init__(self, status: int, headers: Headers, chunks: tuple[bytes, ...]) -> None:
        self.status = status
        self.reason = ""
        self.headers = tuple([(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers])
        self.parts = chunks

    def get(self, name: str) -> str | None:
        wanted = name.lower().encode("latin-1")
        return next((value.decode("latin-1") for key, value in self.headers if key == wanted), None)

    def arrived(self) -> bytes | None:
        return None  # a stream is played as it was recorded, whatever it consists of

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self.parts:
            yield chunk

    async def read(self, limit: int = READ_LIMIT) -> bytes:
        return b"".join(self.parts)[:limit]

    def abort(self) -> None:
        self.parts = ()


def is_provider_failure(status: int, query: Query, *, billed: bool = True) -> bool:
    """Whether a status that no fault made is the provider's failure (or the key's), not an answer to the agent.

    404 to a request for a completion is one: a provider has no such model or path. A script's own 404 is an answer.
    """
    if status == 404:
        return billed and query.codec is not None
    return status in (401, 403, 408, 429) or status >= 500
