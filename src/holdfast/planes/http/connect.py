"""CONNECT: a client requests a tunnel through the proxy. Holdfast passes its bytes unread or intercepts its TLS."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from holdfast.http1.relay import join
from holdfast.http1.server import Exchange, serve_plain, serve_tls
from holdfast.planes.http.outgoing_reply import send_failure
from holdfast.planes.http.proxied_request import ProxyCall
from holdfast.planes.http.request import Origin, RequestTarget
from holdfast.planes.http.trust import TRUST_VARIABLES
from holdfast.protocols.fault import Call, Failed, Reply
from holdfast.protocols.trial import TrialContext
from holdfast.streams.sockets import TLS_FAILURE, TLS_HANDSHAKE

Request: TypeAlias = Callable[[Exchange, TrialContext, Origin], Awaitable[None]]
"""Answers a request inside a connection to an origin."""

_IMMEDIATELY_S = 1.0
"""A client that leaves this soon after the handshake without a request probably rejected Holdfast's certificate."""


class ConnectRequest(ProxyCall, kw_only=True):
    """A CONNECT through the proxy."""

    answer: Request
    _requests: int = 0
    """Number of requests inside the connection so far."""
    _certified_at: float | None = None
    """When the client received Holdfast's certificate."""
    _awaits_hello: bool = False
    """Whether a fault waits for the client's TLS hello."""

    def end_trial(self) -> None:
        """Report a connection that is still open when the trial ends."""
        if self._left_immediately:
            self._report_mistrust(None)
        if self._awaits_hello:
            self._trace.mark_undelivered("the client did not begin TLS")
        if self._started_trace is not None:
            self._started_trace.report_end()

    async def _process(self) -> None:
        rules, origin = self._rules, self._origin
        if rules.is_own(origin) or rules.is_model(origin):
            await self._intercept()
            return
        rules.note_bypassed(self.context, origin)
        # A recorded reply needs no permission. A call that is forwarded anyway is checked at that point.
        answered = self.context.injector.is_replay and rules.is_intercepted(origin)
        if not answered:
            # Checked before the 200: after it a client could no longer distinguish a denied host from a broken one.
            rules.policy.ensure_permitted(origin.host, origin.port)
        if self.context.injector.can_affect("http", str(origin)):
            arguments = {"method": "CONNECT", "url": str(origin), "host": origin.host, "port": origin.port}
            call = Call("http", str(origin), arguments, self._trace.n)
            await self.context.injector.inject(call, _confirm_connected, _refuse_wait)
        if rules.is_intercepted(origin):
            if not answered:  # refused or not found, before the client gets its 200
                await rules.connector.resolve_addresses(origin)
            await self._intercept()
        else:
            trace = self._trace  # it begins before the connection is made
            wire = await rules.connector.open_stream(origin, tls=False)
            trace.status = 200
            rules.note_model(self.context, origin)
            await join(await self._exchange.take_over(), wire)

    @property
    def _origin(self) -> Origin:
        return self._target.origin

    # -- forwarding ------------------------------------------------------------------------------

    async def _intercept(self) -> None:
        # The client gets its 200 first, and only its first byte shows what follows: a TLS hello is answered with a
        # certificate of this run, anything else is served as plain HTTP on the same tunnel.
        tunnel = await self._exchange.take_over()
        first = await tunnel.peek()
        if not first:
            return
        if first[0] != TLS_HANDSHAKE:
            self._target = RequestTarget("CONNECT", Origin("http", self._origin.host, self._origin.port), "")
            await serve_plain(tunnel, self._answer_request).wait_closed()
            return
        self._certified_at = self.context.sink.now()
        try:
            # A client that does not trust the run's certificate fails here or leaves right after the handshake. Its
            # requests are then invisible, which the report must say.
            inner = await serve_tls(
                tunnel, self._rules.authority.get_leaf_context(self._origin.host), self._answer_request
            )
        except OSError as broken:
            self._report_mistrust(broken)
            return
        self._certified_at = self.context.sink.now()
        await inner.wait_closed()
        if self._left_immediately:
            self._report_mistrust(None)

    @property
    def _left_immediately(self) -> bool:
        """Whether the client sent no request since it received the certificate, a moment ago."""
        return (
            self._certified_at is not None
            and not self._requests
            and self.context.sink.now() - self._certified_at < _IMMEDIATELY_S
        )

    async def _answer_request(self, exchange: Exchange) -> None:
        self._requests += 1
        await self.answer(exchange, self.context, self._origin)

    # -- failures --------------------------------------------------------------------------------
    def _report_mistrust(self, broken: OSError | None) -> None:
        """Record that nothing inside this connection was observed; a fault that waited for it was not met."""
        trace = self._trace
        why = f" ({broken.reason})" if isinstance(broken, ssl.SSLError) and broken.reason else ""
        trace.error_type = "certificate_refused"
        trace.output = f"the client disconnected during the TLS handshake{why}"
        rejected = (
            f"a client rejected Holdfast's certificate for {self._origin.host}{why}: its requests were not observed. "
            f"Make it trust the file that these variables name: {', '.join(TRUST_VARIABLES)}"
        )
        self.context.sink.note(rejected)
        self.context.sink.add_error(rejected, "certificate-refused")

    async def _send_failure(self, failed: Failed) -> None:
        if failed.kind != "tls":
            await send_failure(self._exchange, failed, self._trace)
            return
        self._exchange.ensure_connected()
        self._trace.error_type, self._trace.output = "tls_error", str(failed)
        self._awaits_hello = True
        try:
            tunnel = await self._exchange.take_over()
            if not await tunnel.read():  # its TLS hello
                raise ConnectionResetError("the client had disconnected")
            await tunnel.write(TLS_FAILURE)
            tunnel.close()
        except ConnectionError:
            self._trace.mark_undelivered()
            raise
        self._awaits_hello = False


async def _confirm_connected(call: Call) -> Reply:
    return Reply(None)


async def _refuse_wait(ms: float) -> None:
    raise RuntimeError("a fault of connecting does not wait")
