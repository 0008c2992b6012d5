"""http_mock: a service that answers by its routes and records what it was asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

from holdfast.http1.server import Exchange, Listener, serve
from holdfast.model.trial import Trial
from holdfast.model.world import ServiceSpec
from holdfast.protocols import Recorded
from holdfast.world.services.http_mock_body import body_of
from holdfast.world.services.http_mock_record import BODY_KEPT, RequestRecord
from holdfast.world.services.http_mock_route import MockRoute
from holdfast.world.services.http_mock_routes import MockRequest, Routes

_OWN = frozenset(("content-length", "transfer-encoding", "connection"))


class MockKeeper:
    """Gives every trial a mock of its own. Nothing has to be kept warm: a mock is a listener in our own process."""

    def __init__(self, spec: ServiceSpec, routes: Sequence[MockRoute], default_response: int) -> None:
        self._spec = spec
        self._routes = routes
        self._default = default_response

    async def provide(self, trial: Trial, *, alone: bool) -> HttpMock:
        return await HttpMock.open(self._spec, Routes(self._routes, self._default))

    async def close(self) -> None:
        """Mocks are closed by their trials."""


class HttpMock:
    """One trial's mock, on a port of loopback that only we know."""

    def __init__(self, spec: ServiceSpec, routes: Routes) -> None:
        self.spec = spec
        self.upstream: tuple[str, int] | str = ("127.0.0.1", 0)
        self._routes = routes
        self._record = RequestRecord(spec.name)
        self._listener: Listener

    @classmethod
    async def open(cls, spec: ServiceSpec, routes: Routes) -> HttpMock:
        mock = cls(spec, routes)
        mock._listener = await serve(mock.answer)
        mock.upstream = ("127.0.0.1", mock._listener.port)
        return mock

    @property
    def requests(self) -> Sequence[Recorded]:
        return self._record.requests

    @property
    def dropped(self) -> int:
        return self._record.dropped

    @property
    def variables(self) -> Mapping[str, str]:
        return {"URL": "http://{host}:{port}"}

    @property
    def notes(self) -> tuple[str, ...]:
        return self._record.notes

    async def close(self) -> None:
        await self._listener.close()

    async def answer(self, exchange: Exchange) -> None:
        """One request: the first route that fits, else the default response. It counts though the client may leave."""
        ts = time.time()
        asked = await self._asked(exchange)
        replied = self._routes.reply(asked)
        self._record.add(asked, replied, ts)
        if replied.delay_ms:
            await asyncio.sleep(replied.delay_ms / 1000)
        headers = [(name, value) for name, value in replied.headers if name.lower() not in _OWN]
        await exchange.respond(replied.status, headers, b"" if asked.method == "HEAD" else replied.body.encode())

    async def _asked(self, exchange: Exchange) -> MockRequest:
        parts, size = [], 0
        async for chunk in exchange.chunks():
            parts.append(chunk[: max(0, BODY_KEPT - size)])
            size += len(chunk)
        path, _, query = exchange.head.target.partition("?")
        headers = tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in exchange.head.headers)
        body = body_of(headers, b"".join(parts), BODY_KEPT, cut=size > BODY_KEPT)
        return MockRequest(exchange.head.method, path, query, headers, body.text, body.cut, body.unread)
