"""TrialPlanes: the planes as one trial meets them, behind one address."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

from holdfast.http1.client import Upstreams
from holdfast.http1.server import Exchange
from holdfast.planes.egress_policy import Policy
from holdfast.planes.llm.codecs.formats import asks_model, provider_of_host
from holdfast.planes.llm.gateway import Gateway
from holdfast.planes.llm.sources.provider_hosts import is_public
from holdfast.planes.mcp.plane import McpPlane
from holdfast.planes.trial_address import LoopbackAddress, route
from holdfast.protocols.trial import TrialContext

if TYPE_CHECKING:
    from holdfast.planes.http.authority import Authority
    from holdfast.planes.http.proxy import Proxy

_HTTPS = 443


class SharedPlanes(Protocol):
    """What the trials of a site share."""

    upstreams: Upstreams
    policy: Policy
    gateway: Gateway
    mcp: McpPlane
    tools: frozenset[str]
    """Tools that are wrapped in the agent's own process."""
    urls: tuple[str, ...]
    """The URL globs that faults and rules name."""
    authority: Authority | None
    """Signs certificates for the proxy; None if there is no HTTP plane."""


class TrialPlanes:
    """Serves the requests of one trial, each on its plane."""

    def __init__(self, shared: SharedPlanes, address: LoopbackAddress, context: TrialContext) -> None:
        self._shared = shared
        self._address = address
        self._context = context
        self._traffic = shared.gateway.traffic(context, self._elsewhere)
        self._proxy: Proxy | None = None

    def model(self, exchange: Exchange, provider: str, path: str) -> Awaitable[None]:
        if self._context.limit:
            return _over(exchange)
        return self._traffic.serve(exchange, provider, path)

    async def web(self, exchange: Exchange) -> None:
        if self._context.limit:
            await _over(exchange)
            return
        if self._shared.authority is None:
            await exchange.respond(403, body=b"this run has no HTTP plane\n")
            return
        await self._web().serve(exchange, self._context)

    async def visit(self, exchange: Exchange, scheme: str, host: str, port: int) -> None:
        from holdfast.planes.http.request import Origin

        await self._web().request(exchange, self._context, Origin(scheme, host, port))

    async def mcp(self, exchange: Exchange, server: str) -> None:
        await self._shared.mcp.serve(exchange, server, self._context)

    def broke(self, why: str) -> None:
        self._context.broke(why)

    def note(self, text: str) -> None:
        self._context.note(text)

    def close(self) -> None:
        self._traffic.close()
        if self._proxy is not None:
            self._proxy.leave(self._context)
        self._shared.mcp.leave(self._context)  # last: until then the traffic knows which tools are MCP's

    def _elsewhere(self) -> frozenset[str]:
        """Tools that are met by another plane than the model's traffic."""
        return self._shared.mcp.names(self._context) | self._shared.tools

    def _web(self) -> Proxy:
        if self._proxy is None:
            from holdfast.planes.http.proxy import Proxy

            shared = self._shared
            assert shared.authority is not None
            self._proxy = Proxy(
                upstreams=shared.upstreams,
                authority=shared.authority,
                policy=shared.policy,
                looked_into=shared.urls,
                model=self._by_host,
                is_model=lambda host: provider_of_host(host) is not None,
                asks_model=asks_model,
                nearby=self._context.nearby,
                own=("127.0.0.1", self._address.port),
                own_handler=self._own,
            )
        return self._proxy

    async def _by_host(self, exchange: Exchange, context: TrialContext, origin: str) -> None:
        """A call to a provider's own host, through the proxy. Where egress rules keep it from there, the gateway
        goes in its stead: as for any other call, and not to a host of the agent's choice."""
        host = origin.partition("://")[2].partition(":")[0]
        provider = provider_of_host(host) or "openai"
        led = is_public(provider, host) and not self._shared.policy.permits(host, _HTTPS)
        target = exchange.head.target
        path = "/" + target.partition("://")[2].partition("/")[2] if "://" in target[:12] else target
        await self._traffic.serve(exchange, provider, path, base_url=None if led else origin)

    async def _own(self, exchange: Exchange, context: TrialContext, path: str) -> None:
        """A call to our own address that a client sent through the proxy."""
        await route(exchange, path, self._address.token, self)


async def _over(exchange: Exchange) -> None:
    """The agent has passed a limit, and is being ended."""
    exchange.keep_alive = False
    await exchange.respond(403, body=b"agent.limits: this trial is over\n")
