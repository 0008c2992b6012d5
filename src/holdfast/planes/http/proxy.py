"""The HTTP plane: a forward proxy that sees the requests of one agent, and breaks those that a fault is placed on."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TypeAlias
from urllib.request import proxy_bypass_environment as bypassed  # type: ignore[attr-defined]  # not in its stubs

from holdfast.http1.client import Upstreams
from holdfast.http1.server import Exchange
from holdfast.planes.http.authority import Authority
from holdfast.planes.http.connect import ConnectRequest
from holdfast.planes.http.connector import Connector
from holdfast.planes.http.policy import NotPermitted, Policy
from holdfast.planes.http.proxied_request import ProxiedRequest
from holdfast.planes.http.request import Origin, Wanted, connected, wanted
from holdfast.planes.urls import declares, host_matches
from holdfast.protocols import TrialContext

Model: TypeAlias = Callable[[Exchange, TrialContext, str], Awaitable[None]]
"""Answers a request to a model's provider; the last argument is the provider's `https://host`."""
Own: TypeAlias = Callable[[Exchange, TrialContext, str], Awaitable[None]]
"""Answers a request to our own listener that came through the proxy; the last argument is its path."""

_TEXT = (("content-type", "text/plain; charset=utf-8"),)


class Proxy:
    """Serves what comes through the proxy, for any trial.

    `looked_into` are URL globs: TLS to a host that one of them can mean, or for which `is_model` is true, is opened;
    all other TLS passes unread. `environ` is the user's own, where a proxy may be named.
    """

    def __init__(
        self,
        *,
        upstreams: Upstreams,
        authority: Authority,
        policy: Policy,
        looked_into: Iterable[str] = (),
        model: Model | None = None,
        is_model: Callable[[str], bool] = lambda host: False,
        nearby: Mapping[tuple[str, int], tuple[str, int]] | None = None,
        own: tuple[str, int] | None = None,
        own_handler: Own | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.reach = Connector(upstreams, policy, nearby or {})
        self.authority = authority
        self.policy = policy
        self._looked_into = tuple(looked_into)
        self._model = model
        self._is_model = is_model
        self._own = own
        self._own_handler = own_handler
        self._open: set[ProxiedRequest | ConnectRequest] = set()
        self._around = {name.lower().removesuffix("_proxy"): value for name, value in environ.items() if _leads(name)}

    async def serve(self, exchange: Exchange, context: TrialContext) -> None:
        """Answers one request of a trial's agent: a whole URL, or CONNECT."""
        if exchange.head.method == "CONNECT":
            async with self._readable(exchange, context):
                await self._run(ConnectRequest(self, exchange, context, connected(exchange.head.target)))
        else:
            await self.request(exchange, context)

    async def request(self, exchange: Exchange, context: TrialContext, origin: Origin | None = None) -> None:
        """Answers one request, in the open or inside of a connection to `origin`."""
        async with self._readable(exchange, context):
            await self._request(exchange, context, wanted(exchange.head, origin))

    @asynccontextmanager
    async def _readable(self, exchange: Exchange, context: TrialContext) -> AsyncIterator[None]:
        """What is asked for and cannot be read is the client's doing: it gets 400, and the trial a note."""
        try:
            yield
        except ValueError as odd:
            if exchange.answered:
                raise
            context.note(f"the proxy could not read what it was asked for, and answered 400: {odd}")
            await exchange.respond(400, _TEXT, f"Holdfast: {odd}\n".encode(errors="replace"))

    async def _request(self, exchange: Exchange, context: TrialContext, want: Wanted) -> None:
        if self.is_own(want.origin) and self._own_handler is not None:
            await self._own_handler(exchange, context, want.path)
        elif self.is_model(want.origin) and self._model is not None:
            await self._to_model(exchange, context, want)
        else:
            await self._visit(exchange, context, want)

    def is_own(self, origin: Origin) -> bool:
        """Whether it is our own listener."""
        return self._own is not None and origin.port == self._own[1] and origin.host in (self._own[0], "localhost")

    def is_model(self, origin: Origin) -> bool:
        """Whether it is a provider whose calls go to the gateway: at its own port, not whatever its name is put to."""
        own_port = origin.scheme == "https" and origin.port == 443
        return own_port and self._model is not None and self._is_model(origin.host)

    def looks_into(self, origin: Origin) -> bool:
        """Whether TLS to this place is opened."""
        return self.is_model(origin) or any(host_matches(glob, origin.host, origin.port) for glob in self._looked_into)

    def refuse(self, context: TrialContext, origin: Origin, why: str) -> None:
        """Tells of a place that the policy forbids. If we led loopback calls here, the refusal is our doing."""
        text = f"the proxy refused {origin}: {why}"
        led = self.policy.on_loopback and "loopback" in why
        (context.broke if led else context.note)(text)

    def declares(self, url: str) -> bool:
        """Whether the spec names this URL, or a URL at this origin."""
        return declares(self._looked_into, url)

    def blame(self, context: TrialContext, origin: Origin, url: str, why: str) -> None:
        """Upstream failed and no fault did it: an error if the spec names the URL, else the agent's own choice."""
        text = f"{origin.place} could not be reached through the proxy, and no fault is why: {why}"
        if self.declares(url):
            context.broke(text)
        else:
            context.note(text)

    async def _to_model(self, exchange: Exchange, context: TrialContext, want: Wanted) -> None:
        assert self._model is not None
        try:
            self.policy.permit(want.origin.host, want.origin.port)
        except NotPermitted as refused:
            context.note(f"the proxy refused {want.origin}: {refused}")
            await exchange.respond(403, _TEXT, f"Holdfast: {refused}\n".encode(errors="replace"))
        else:
            await self._model(exchange, context, str(want.origin))

    async def _visit(self, exchange: Exchange, context: TrialContext, want: Wanted) -> None:
        self.say_around(context, want.origin)
        among_others = any(
            isinstance(one, ProxiedRequest) and one.context is context and not one.over for one in self._open
        )
        await self._run(ProxiedRequest(self, exchange, context, want, among_others=among_others))

    async def _run(self, one: ProxiedRequest | ConnectRequest) -> None:
        self._open.add(one)
        try:
            await one.run()
        finally:
            self._open.discard(one)

    def leave(self, context: TrialContext) -> None:
        """The trial is over: what is still under way is told to its trace as far as it came."""
        for one in [one for one in self._open if one.context is context]:
            one.leave()

    def say_around(self, context: TrialContext, origin: Origin) -> None:
        """The user's own proxy is not gone through, which may be why something cannot be reached."""
        if self._around.get(origin.scheme) and not bypassed(origin.host, self._around):
            name = f"{origin.scheme.upper()}_PROXY"
            context.note(f"your {name} is not used: Holdfast's proxy connects to {origin.place} directly")


def _leads(variable: str) -> bool:
    """Whether a variable names a proxy, or hosts that need none."""
    return variable.lower() in ("http_proxy", "https_proxy", "no_proxy")
