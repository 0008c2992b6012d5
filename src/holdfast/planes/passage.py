"""A Passage: the planes as one trial meets them, behind one mooring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.planes.http1.server import Exchange
from holdfast.planes.llm.formats import provider_of_host
from holdfast.planes.mooring import Address, route
from holdfast.protocols import Trip

if TYPE_CHECKING:
    from holdfast.planes.harbour import Harbour
    from holdfast.planes.http.proxy import Proxy


class Passage:
    """Serves the requests of one trial, each on its plane."""

    def __init__(self, harbour: Harbour, place: Address, trip: Trip) -> None:
        self._harbour = harbour
        self._place = place
        self._trip = trip
        self._traffic = harbour.gateway.traffic(trip, self._elsewhere)
        self._proxy: Proxy | None = None

    async def model(self, exchange: Exchange, provider: str, path: str) -> None:
        await self._traffic.serve(exchange, provider, path)

    async def web(self, exchange: Exchange) -> None:
        if self._harbour.authority is None:
            await exchange.respond(403, body=b"this run has no HTTP plane\n")
            return
        await self._web().serve(exchange, self._trip)

    async def visit(self, exchange: Exchange, scheme: str, host: str, port: int) -> None:
        from holdfast.planes.http.request import Origin

        await self._web().request(exchange, self._trip, Origin(scheme, host, port))

    async def mcp(self, exchange: Exchange, server: str) -> None:
        await self._harbour.mcp.serve(exchange, server, self._trip)

    def broke(self, why: str) -> None:
        self._trip.broke(why)

    def note(self, text: str) -> None:
        self._trip.note(text)

    def close(self) -> None:
        self._traffic.close()
        if self._proxy is not None:
            self._proxy.leave(self._trip)
        self._harbour.mcp.leave(self._trip)  # last: until then the traffic knows which tools are MCP's

    def _elsewhere(self) -> frozenset[str]:
        """Tools that are met by another plane than the model's traffic."""
        return self._harbour.mcp.names(self._trip) | self._harbour.tools

    def _web(self) -> Proxy:
        if self._proxy is None:
            from holdfast.planes.http.proxy import Proxy

            harbour = self._harbour
            assert harbour.authority is not None
            self._proxy = Proxy(
                upstreams=harbour.upstreams,
                authority=harbour.authority,
                policy=harbour.policy,
                looked_into=harbour.chart.urls,
                model=self._by_host,
                is_model=lambda host: provider_of_host(host) is not None,
                nearby=self._trip.nearby,
                own=("127.0.0.1", self._place.port),
                own_handler=self._own,
            )
        return self._proxy

    async def _by_host(self, exchange: Exchange, trip: Trip, origin: str) -> None:
        """A call to a provider's own host, through the proxy."""
        host = origin.partition("://")[2].partition(":")[0]
        target = exchange.head.target
        path = "/" + target.partition("://")[2].partition("/")[2] if "://" in target[:12] else target
        await self._traffic.serve(exchange, provider_of_host(host) or "openai", path, base_url=origin)

    async def _own(self, exchange: Exchange, trip: Trip, path: str) -> None:
        """A call to our own address that a client sent through the proxy."""
        await route(exchange, path, self._place.token, self)
