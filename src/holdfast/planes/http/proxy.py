"""The HTTP plane: a forward proxy that observes one agent's requests and applies faults to them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

from holdfast.http1.server import Exchange
from holdfast.planes.http.connect import ConnectRequest
from holdfast.planes.http.outgoing_reply import TEXT
from holdfast.planes.http.proxied_request import ProxiedRequest
from holdfast.planes.http.proxy_rules import ProxyRules
from holdfast.planes.http.request import Origin, RequestTarget, parse_connect_target, parse_target
from holdfast.protocols.trial import TrialContext

ServeModel: TypeAlias = Callable[[Exchange, TrialContext, str], Awaitable[None]]
"""Answers a request to a model provider; the last argument is the provider's `https://host`."""
ServeOwn: TypeAlias = Callable[[Exchange, TrialContext, str], Awaitable[None]]
"""Answers a request to Holdfast's own listener that came through the proxy; the last argument is its path."""


class Proxy:
    """Serves requests through the proxy, for any trial; the settings are those of its ProxyRules."""

    def __init__(self, rules: ProxyRules, model: ServeModel, own: ServeOwn) -> None:
        self._rules = rules
        self._model = model
        self._own = own
        self._open: set[ProxiedRequest | ConnectRequest] = set()

    async def serve(self, exchange: Exchange, context: TrialContext) -> None:
        """Answer one request of a trial's agent: an absolute URL, or CONNECT."""
        if exchange.head.method == "CONNECT":
            async with self._reject_unparsable(exchange, context):
                target = parse_connect_target(exchange.head.target)
                await self._run(ConnectRequest(self._rules, exchange, context, target, answer=self.serve_request))
        else:
            await self.serve_request(exchange, context)

    async def serve_request(self, exchange: Exchange, context: TrialContext, origin: Origin | None = None) -> None:
        """Answer one request, in plain HTTP or inside a connection to `origin`."""
        async with self._reject_unparsable(exchange, context):
            await self._dispatch(exchange, context, parse_target(exchange.head, origin))

    @asynccontextmanager
    async def _reject_unparsable(self, exchange: Exchange, context: TrialContext) -> AsyncIterator[None]:
        """Handle a request that cannot be parsed, which is the client's fault: it gets 400, and the trial a note."""
        try:
            yield
        except ValueError as odd:
            if exchange.is_answered:
                raise
            context.sink.note(f"the proxy could not parse a request and answered 400: {odd}")
            await exchange.respond(400, (("content-type", TEXT),), f"Holdfast: {odd}\n".encode(errors="replace"))

    async def _dispatch(self, exchange: Exchange, context: TrialContext, target: RequestTarget) -> None:
        if self._rules.is_own(target.origin):
            await self._own(exchange, context, target.path)
        elif self._rules.is_model(target.origin):
            await self._model(exchange, context, str(target.origin))
        else:
            self._rules.note_bypassed(context, target.origin)
            among_others = any(
                isinstance(request, ProxiedRequest) and request.context is context and not request.is_over
                for request in self._open
            )
            await self._run(ProxiedRequest(self._rules, exchange, context, target, among_others=among_others))

    async def _run(self, request: ProxiedRequest | ConnectRequest) -> None:
        self._open.add(request)
        try:
            await request.run()
        finally:
            self._open.discard(request)

    def end_trial(self, context: TrialContext) -> None:
        """End a trial: its requests in progress are reported to its trace as far as they got."""
        for request in [request for request in self._open if request.context is context]:
            request.end_trial()
