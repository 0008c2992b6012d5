"""SitePlanes: what all addresses of a site share: models, certificates, MCP servers and egress policy.

TrialPlanes: the planes of one trial, behind one address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from msgspec import Struct

from holdfast.http1.client import Upstreams
from holdfast.http1.server import Exchange
from holdfast.model.model_spec import ModelSpec
from holdfast.model.scenario import Injection, Scenario
from holdfast.model.spec import AgentSpec
from holdfast.model.world import Network
from holdfast.planes.egress_policy import Policy
from holdfast.planes.http.trust import build_proxy_variables, build_trust_variables, create_trusted_context
from holdfast.planes.llm.codecs.formats import find_provider, is_model_call
from holdfast.planes.llm.gateway import Gateway, TrialGateway, end_over_limit
from holdfast.planes.llm.sources.provider_hosts import HOSTS, is_public
from holdfast.planes.llm.sources.router import Router
from holdfast.planes.llm.sources.source import PLACEHOLDER_KEY
from holdfast.planes.mcp.config import (
    Target,
    build_relay_command,
    read_config,
    rewrite_config,
    write_config,
)
from holdfast.planes.mcp.plane import McpPlane
from holdfast.planes.shared_address import SharedAddress
from holdfast.planes.trial_address import LoopbackAddress, TrialAddress, route_request
from holdfast.processes import scratch
from holdfast.protocols.trial import TrialContext

if TYPE_CHECKING:
    from holdfast.planes.http.authority import Authority
    from holdfast.planes.http.proxy import Proxy


_HTTPS = 443


class PlaneSettings(Struct, frozen=True):
    """The settings of a site's planes: the agent with resolved references, and the weather of its trials."""

    agent: AgentSpec
    root: Path
    environ: Mapping[str, str]
    models: Mapping[str, ModelSpec] = {}
    scenarios: tuple[Scenario, ...] = ()
    web: bool = True
    """Whether the agent's HTTP goes through the proxy."""
    read: tuple[str, ...] = ()
    """URL globs of the requests that rules read: TLS to these hosts is intercepted, too."""
    record: Path | None = None
    replay: Path | None = None
    prefix: bool = False
    """Whether the recording answers only the first requests of a trial, as far as they are the recorded ones."""
    mask: Callable[[str], str] = str
    tool_results: bool = True
    """Whether faults of tools act on tool results in the model traffic. False if the agent's own functions are wrapped.
    """
    network: Network | None = None
    """Where a sandboxed agent may connect; None: anywhere except this machine."""

    @property
    def injections(self) -> Iterable[Injection]:
        return (injection for scenario in self.scenarios for injection in scenario.injections)

    @property
    def urls(self) -> tuple[str, ...]:
        """The URL globs that faults and rules name."""
        globs = (i.target if i.plane == "http" else i.match_url for i in self.injections)
        return tuple(dict.fromkeys((*(url for url in globs if url is not None), *self.read)))


class SitePlanes:
    """Opens addresses, and creates the planes of each trial."""

    def __init__(self, settings: PlaneSettings, authority: bytes | None = None) -> None:
        """`authority` is the certificate authority of a running gateway, if it must be reused."""
        self.settings = settings
        self.tools: frozenset[str] = frozenset()
        """Tools that are wrapped in the agent's process."""
        self.folder = scratch.make("planes")
        self.environ = {**settings.environ, **settings.agent.env}
        # upstream servers are trusted as the agent itself would trust them
        self.upstreams = Upstreams(partial(create_trusted_context, self.environ))
        network = settings.network
        self.policy = (
            Policy(default=network.egress.default, allow=network.egress.allow) if network else Policy(settings.urls)
        )
        self.urls = settings.urls
        self.authority: Authority | None = None
        self._open_trials: WeakSet[TrialPlanes] = WeakSet()
        try:
            self._open(authority)
        except BaseException:
            scratch.remove(self.folder)
            raise

    def _open(self, authority: bytes | None) -> None:
        settings, agent = self.settings, self.settings.agent
        self._config = _read_mcp_config(agent, settings.root)
        servers: Mapping[str, Target] = {}
        if self._config:  # HTTP servers, which Holdfast itself connects to, with the agent's environment filled in
            _, servers = rewrite_config(self._config, relay=(), environ={}, base_url="", fill_from=self.environ)
        self.mcp = McpPlane(servers, self.upstreams)
        self.router = Router(
            settings.models,
            self.environ,
            settings.root,
            self.upstreams,
            record=settings.record,
            replay=settings.replay,
            prefix=settings.prefix,
            mask=settings.mask,
            note=self._note,
            policy=self.policy,
        )
        own_functions = agent.is_python and bool(agent.llm)
        self.gateway = Gateway(
            self.router, settings.models, on_calls=not own_functions, on_results=settings.tool_results
        )
        if settings.web:
            from holdfast.planes.http.authority import Authority

            self.authority = Authority(self.folder, authority, self.environ)

    async def open_address(self, *, sock: socket | None = None, token: str | None = None) -> TrialAddress:
        """Open an address for one instance of the agent."""
        return await TrialAddress.open(self.open_trial, self.build_variables, sock=sock, token=token)

    async def open_shared_address(self) -> SharedAddress:
        """Open an address for all trials that are forked from one process."""
        return await SharedAddress.open(self.open_trial, self.build_variables)

    async def close(self) -> None:
        try:
            self.router.close()
        finally:
            try:
                await self.upstreams.close()
            finally:
                scratch.remove(self.folder)

    def open_trial(self, address: LoopbackAddress, context: TrialContext) -> TrialPlanes:
        """Return the planes of one trial."""
        trial_planes = TrialPlanes(self, address, context)
        self._open_trials.add(trial_planes)
        return trial_planes

    def _note(self, text: str) -> None:
        """Add a note about a recording to every trial in progress."""
        for trial_planes in self._open_trials:
            trial_planes.note(text)

    def build_variables(self, address: LoopbackAddress) -> dict[str, str]:
        """Return the variables to start an agent with, to route its calls here."""
        variables = {**build_model_variables(address.url), **build_placeholder_keys(self.environ)}
        if self.authority is not None:
            variables |= build_proxy_variables(address.proxy_url, self.policy.has_loopback_target)
            variables |= build_trust_variables(self.authority.ca_file, self.authority.own_file, self.environ)
        path = self.folder / f"mcp-{address.port}.json"
        variables |= build_mcp_variables(self.settings.agent, self.settings.root, path, address.url, address.proxy_url)
        return variables


def build_model_variables(url: str) -> dict[str, str]:
    """Return the variables from which the providers' libraries read the API address."""
    return {
        name: f"{url}/{provider}{'/v1' if provider == 'openai' else ''}"
        for provider, host in HOSTS.items()
        for name in host.base_variables
    }


def build_mcp_variables(agent: AgentSpec | None, root: Path, path: Path, url: str, proxy_url: str) -> dict[str, str]:
    """Return the variables from which MCP relays and clients read their address; the client configuration is written
    to `path`."""
    relayed = {"HOLDFAST_MCP": proxy_url}
    config = _read_mcp_config(agent, root) if agent is not None else None
    if not config:
        return relayed
    rewritten, _ = rewrite_config(config, relay=build_relay_command(), environ=relayed, base_url=f"{url}/mcp")
    write_config(path, rewritten)
    return {**relayed, "HOLDFAST_MCP_CONFIG": str(path)}


def build_placeholder_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """Build dummy keys for libraries that refuse to start without a key, if the user has none."""
    keys: dict[str, str] = {}
    for host in HOSTS.values():
        if not any(environ.get(name) for name, _, _ in host.key_variables):
            usual = host.key_variables[0][1:]  # a provider may have its key under several names
            keys |= {name: PLACEHOLDER_KEY for name, *sent in host.key_variables if tuple(sent) == usual}
    return keys


def _read_mcp_config(agent: AgentSpec, root: Path) -> Mapping[str, Any] | None:
    config = agent.mcp_config
    return read_config(root / config) if isinstance(config, str) else config


class TrialPlanes:
    """Serves the requests of one trial, each on its plane."""

    def __init__(self, shared: SitePlanes, address: LoopbackAddress, context: TrialContext) -> None:
        self._shared = shared
        self._address = address
        self._context = context
        # the gateway leaves out tools that another plane handles
        self._trial_gateway = TrialGateway(
            shared.gateway, context, lambda: shared.mcp.list_tool_names(context) | shared.tools
        )
        self.serve_model = self._trial_gateway.serve
        self._proxy: Proxy | None = None

    async def serve_web(self, exchange: Exchange) -> None:
        if self._context.sink.limit:
            await end_over_limit(exchange)
            return
        if self._shared.authority is None:
            await exchange.respond(403, body=b"this run has no HTTP plane\n")
            return
        await self._get_proxy().serve(exchange, self._context)

    async def serve_host(self, exchange: Exchange, scheme: str, host: str, port: int) -> None:
        from holdfast.planes.http.request import Origin

        await self._get_proxy().serve_request(exchange, self._context, Origin(scheme, host, port))

    async def serve_mcp(self, exchange: Exchange, server: str) -> None:
        await self._shared.mcp.serve(exchange, server, self._context)

    def report_error(self, why: str) -> None:
        self._context.sink.add_error(why, "bug")

    def note(self, text: str) -> None:
        self._context.sink.note(text)

    def close(self) -> None:
        self._trial_gateway.close()
        if self._proxy is not None:
            self._proxy.end_trial(self._context)
        self._shared.mcp.end_trial(
            self._context
        )  # last: until then the traffic needs to know which tools belong to MCP

    def _get_proxy(self) -> Proxy:
        if self._proxy is None:
            from holdfast.planes.http.proxy import Proxy
            from holdfast.planes.http.proxy_rules import Connector, ProxyRules

            shared = self._shared
            assert shared.authority is not None
            rules = ProxyRules(
                Connector(shared.upstreams, shared.policy, self._context.services),
                shared.authority,
                shared.policy,
                intercepted=shared.urls,
                is_model=lambda host: find_provider(host) is not None,
                asks_model=is_model_call,
                own=("127.0.0.1", self._address.port),
            )
            self._proxy = Proxy(rules, self._serve_model_host, self._serve_holdfast)
        return self._proxy

    async def _serve_model_host(self, exchange: Exchange, context: TrialContext, origin: str) -> None:
        """Handle a call to a provider's own host through the proxy. If egress rules deny that host, the gateway calls
        the configured provider, as for any other model call, instead of a host that the agent chooses."""
        host = origin.partition("://")[2].partition(":")[0]
        provider = find_provider(host) or "openai"
        is_replaced = is_public(provider, host) and not self._shared.policy.is_permitted(host, _HTTPS)
        target = exchange.head.target
        path = "/" + target.partition("://")[2].partition("/")[2] if "://" in target[:12] else target
        await self._trial_gateway.serve(exchange, provider, path, base_url=None if is_replaced else origin)

    async def _serve_holdfast(self, exchange: Exchange, context: TrialContext, path: str) -> None:
        """Handle a call to Holdfast's own address that a client sent through the proxy."""
        await route_request(exchange, path, self._address.token, self)
