"""http_mock: a service that answers by its routes and records the requests."""

from __future__ import annotations

import asyncio
import codecs
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from email.message import Message
from typing import NamedTuple

from holdfast.http1.bodies import ENCODINGS, inflate
from holdfast.http1.server import Exchange, Listener, serve
from holdfast.model.trial import Trial
from holdfast.model.world import ServiceSpec
from holdfast.protocols.service import Recorded
from holdfast.world.services.mock.routes import MockReply, MockRoute, RoutedRequest, Routes

REQUESTS_KEPT = 10_000
BODY_KEPT = 1_000_000
"""Maximum number of bytes of a body that are read and stored."""
RECORD_KEPT = 32_000_000
"""Maximum number of characters of all requests and responses together."""
_LAYERS = 4
"""Maximum number of content encodings, one inside the other, that are decoded."""
_CHARSETS = ("utf", "ascii", "iso8859", "cp125", "koi8", "gb", "big5", "shift_jis", "euc")
"""Prefixes of supported charset names: others decode slowly or are not text."""
_OWN = frozenset(("content-length", "transfer-encoding", "connection"))


class MockKeeper:
    """Gives every trial its own mock. Nothing is kept warm: a mock is a listener in this process."""

    def __init__(self, spec: ServiceSpec, routes: Sequence[MockRoute], default_response: int) -> None:
        self._spec = spec
        self._routes = routes
        self._default = default_response

    async def provide(self, trial: Trial, *, alone: bool) -> HttpMock:
        return await HttpMock.open(self._spec, Routes(self._routes, self._default))

    async def close(self) -> None:
        """Do nothing: trials close their mocks."""


class RequestRecord:
    """The first requests, in order of arrival; later ones are only counted."""

    def __init__(self, service: str) -> None:
        self.requests: list[Recorded] = []
        self.dropped = 0
        self._cut = False
        """Whether a body was longer than what is stored."""
        self._unread = ""
        """Why a body could not be decoded."""
        self._service = service
        self._size = 0

    def add(self, request: RoutedRequest, replied: MockReply, ts: float) -> None:
        self._cut |= request.cut
        self._unread = self._unread or request.unread
        size = self._size + _measure(request, replied)
        if self.dropped or len(self.requests) >= REQUESTS_KEPT or size > RECORD_KEPT:
            self.dropped += 1
            return
        self._size = size
        self.requests.append(Recorded(**request._asdict(), status=replied.status, response=replied.body, ts=ts))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader, from the observations so far."""
        overflow = (
            f"{self._service} received {self.dropped} more requests; only the first {len(self.requests)} are stored"
        )
        cut = f"the body of a request to {self._service} was cut at {BODY_KEPT} bytes"
        unread = f"the body of a request to {self._service} cannot be decoded: {self._unread}"
        notes = ((overflow, self.dropped), (cut, self._cut), (unread, self._unread))
        return tuple(note for note, so in notes if so)


class HttpMock(RequestRecord):
    """One trial's mock, on a loopback port that only Holdfast knows."""

    variables: Mapping[str, str] = {"URL": "http://{host}:{port}"}

    def __init__(self, spec: ServiceSpec, routes: Routes) -> None:
        super().__init__(spec.name)
        self.spec = spec
        self.upstream: tuple[str, int] | str = ("127.0.0.1", 0)
        self._routes = routes
        self._listener: Listener

    @classmethod
    async def open(cls, spec: ServiceSpec, routes: Routes) -> HttpMock:
        mock = cls(spec, routes)
        mock._listener = await serve(mock.answer)
        mock.upstream = ("127.0.0.1", mock._listener.port)
        return mock

    async def close(self) -> None:
        await self._listener.close()

    async def answer(self, exchange: Exchange) -> None:
        """Answer one request by the first route that matches, else by the default response.

        It counts even if the client disconnects.
        """
        ts = time.time()
        request = await self._read_request(exchange)
        replied = self._routes.reply(request)
        self.add(request, replied, ts)
        if replied.delay_ms:
            await asyncio.sleep(replied.delay_ms / 1000)
        headers = [(name, value) for name, value in replied.headers if name.lower() not in _OWN]
        await exchange.respond(replied.status, headers, b"" if request.method == "HEAD" else replied.body.encode())

    async def _read_request(self, exchange: Exchange) -> RoutedRequest:
        parts, size = [], 0
        async for chunk in exchange.stream_body():
            parts.append(chunk[: max(0, BODY_KEPT - size)])
            size += len(chunk)
        path, _, query = exchange.head.target.partition("?")
        headers = tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in exchange.head.headers)
        body = decode_body(headers, b"".join(parts), BODY_KEPT, cut=size > BODY_KEPT)
        return RoutedRequest(exchange.head.method, path, query, headers, body.text, body.cut, body.unread)


class Body(NamedTuple):
    """A body as text."""

    text: str
    cut: bool = False
    """The text is incomplete."""
    unread: str = ""
    """Why the text could not be decoded."""


class _Unreadable(Exception):
    """Holdfast cannot decode the body."""


class _FalselyLabelled(Exception):
    """The body is not what its headers say."""


def decode_body(headers: Iterable[tuple[str, str]], data: bytes, limit: int, *, cut: bool) -> Body:
    """Decode a body as a server would, up to `limit` bytes; `cut` means that the data is incomplete."""
    headers_by_name: dict[str, list[str]] = {}
    for name, value in headers:
        headers_by_name.setdefault(name.lower(), []).append(value)
    try:
        plain, longer = _unpack(",".join(headers_by_name.get("content-encoding", ())), data, limit, cut=cut)
        charset = _find_charset(headers_by_name.get("content-type", [""])[0], plain)
    except _FalselyLabelled as why:
        # The agent's mistake, not a limit of Holdfast: no server can read this body. Its bytes are shown and searched,
        # but they are not JSON, whatever they look like.
        return Body(f"({why}) {data.decode('utf-8', 'replace')}", cut)
    except _Unreadable as why:
        return Body(data.decode("utf-8", "replace"), cut, str(why))
    return Body(plain.decode(charset, "replace"), cut or longer)


def _unpack(encodings: str, data: bytes, limit: int, *, cut: bool) -> tuple[bytes, bool]:
    """Remove the content encodings; return the data and whether there is more."""
    names = [name for one in encodings.split(",") if (name := one.strip().lower()) not in ("", "identity")]
    if len(names) > _LAYERS:
        raise _Unreadable(f"it has {len(names)} content encodings")
    longer = False
    for name in reversed(names):
        if name not in ENCODINGS:
            raise _Unreadable(f"its content encoding {name[:20]} is not supported")
        plain, problem = inflate(name, data, limit)
        if problem == "damaged" or (problem and not (cut or longer)):
            raise _FalselyLabelled(f"it is not {name}, although its Content-Encoding says so")
        data, longer = plain[:limit], len(plain) > limit
    return data, longer


def _find_charset(content_type: str, data: bytes) -> str:
    """Return the charset that is named; for JSON without one, the one its first bytes suggest."""
    message = Message()
    message["content-type"] = content_type or "text/plain"
    charset = message.get_param("charset")
    if not isinstance(charset, str) or not charset:
        return json.detect_encoding(data) if message.get_content_type().endswith("json") else "utf-8"
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        name = ""
    if not name.startswith(_CHARSETS):
        raise _Unreadable(f"its charset {charset[:20]} is not supported")
    return name


def _measure(request: RoutedRequest, replied: MockReply) -> int:
    headers = sum(len(name) + len(value) for name, value in request.headers)
    return len(request.path) + len(request.query) + headers + len(request.body) + len(replied.body)
