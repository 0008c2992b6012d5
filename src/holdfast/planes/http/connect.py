"""CONNECT: a client requests a tunnel through the proxy. Holdfast passes its bytes unread or intercepts its TLS."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from holdfast.errors import HarnessError
from holdfast.http1.client import UpstreamFailed
from holdfast.http1.relay import join
from holdfast.http1.server import Exchange, Tunnel, serve_plain, serve_tls
from holdfast.model.trace import REFUSED
from holdfast.planes.egress_policy import NotPermitted
from holdfast.planes.http.outgoing_reply import send_failure
from holdfast.planes.http.proxy_rules import ProxyRules
from holdfast.planes.http.request import Origin, Wanted
from holdfast.planes.http.request_trace import RequestTrace
from holdfast.planes.http.trust import TRUST_VARIABLES
from holdfast.protocols.fault import Call, Failed, Reply
from holdfast.protocols.trial import TrialContext

Request: TypeAlias = Callable[[Exchange, TrialContext, Origin], Awaitable[None]]
"""Answers a request inside a connection to an origin."""

_TLS = 0x16
_ALERT = bytes((0x15, 3, 3, 0, 2, 2, 40))  # fatal, handshake_failure
_AT_ONCE_S = 1.0
"""A client that leaves this soon after the handshake without a request probably rejected Holdfast's certificate."""
_TEXT = (("content-type", "text/plain; charset=utf-8"),)


class ConnectRequest:
    """One CONNECT."""

    def __init__(
        self, rules: ProxyRules, exchange: Exchange, context: TrialContext, origin: Origin, request: Request
    ) -> None:
        self._rules = rules
        self._answer = request
        self._exchange = exchange
        self.context = context
        self._origin = origin
        self._asked = 0
        self._shown_at: float | None = None
        """When the client received Holdfast's certificate."""
        self._seen: RequestTrace | None = None
        self._unheard = False
        """Whether a fault waits for the client's TLS hello."""

    async def run(self) -> None:
        """Answers, and returns when the connection has ended."""
        try:
            await self._connect()
        except NotPermitted as refused:
            self._event().refused(self._rules, refused)
            await self._turn_away(403, REFUSED, str(refused))
        except UpstreamFailed as failed:
            self._rules.blame(self.context, self._origin, str(self._origin), str(failed))
            await self._turn_away(504 if failed.kind == "timeout" else 502, "upstream", str(failed))
        except Failed as failed:
            await self._fail(failed)
        except HarnessError as broken:
            self.context.sink.add_error(str(broken), broken.code)
            await self._turn_away(500, "harness", str(broken))
        except ConnectionError:
            self._event().trouble = "client_gone"
        finally:
            if self._seen is not None:
                self._seen.tell()

    def leave(self) -> None:
        """The trial is over while the connection is still open."""
        if self._left_at_once:
            self._mistrusted(None)
        if self._seen is not None:
            if self._unheard:
                self._seen.unfelt("the client did not begin TLS")
            self._seen.tell()

    async def _connect(self) -> None:
        rules, origin = self._rules, self._origin
        if rules.is_own(origin) or rules.is_model(origin):
            await self._open()
            return
        rules.note_bypassed(self.context, origin)
        # A recorded reply needs no permission. A call that is forwarded anyway is checked at that point.
        answered = self.context.injector.is_replay and rules.looks_into(origin)
        if not answered:
            # Checked before the 200: after it a client could no longer distinguish a denied host from a broken one.
            rules.policy.permit(origin.host, origin.port)
        if self.context.injector.can_affect("http", str(origin)):
            await self.context.injector.inject(self._call(), _connected, _never, untouched=_connected)
        if rules.looks_into(origin):
            if not answered:  # refused or not found, before the client gets its 200
                await rules.connector.addresses(origin)
            await self._open()
        else:
            await self._pass_by()

    def _call(self) -> Call:
        origin = self._origin
        arguments = {"method": "CONNECT", "url": str(origin), "host": origin.host, "port": origin.port}
        return Call("http", str(origin), arguments, self._event().n)

    def _event(self) -> RequestTrace:
        """Records the connection itself; only if the requests inside are not observed."""
        if self._seen is None:
            self._seen = RequestTrace(self.context, Wanted("CONNECT", self._origin, ""), self._exchange.head)
        return self._seen

    # -- forwarding ------------------------------------------------------------------------------
    async def _pass_by(self) -> None:
        trace = self._event()
        wire = await self._rules.connector.dial(self._origin, tls=False)
        trace.status = 200
        self._rules.note_model(self.context, self._origin)
        await join(await self._exchange.take_over(), wire)

    async def _open(self) -> None:
        # The client gets its 200 first, and only its first byte shows what follows: a TLS hello is answered with a
        # certificate of this run, anything else is served as plain HTTP on the same tunnel.
        tunnel = await self._exchange.take_over()
        first = await tunnel.peek()
        if not first:
            return
        if first[0] != _TLS:
            self._origin = Origin("http", self._origin.host, self._origin.port)
            await serve_plain(tunnel, self._request).wait_closed()
            return
        self._shown_at = self.context.sink.now()
        try:
            # A client that does not trust the run's certificate fails here or leaves right after the handshake. Its
            # requests are then invisible, which the report must say.
            inner = await serve_tls(tunnel, self._rules.authority.leaf(self._origin.host), self._request)
        except OSError as broken:
            self._mistrusted(broken)
            return
        self._shown_at = self.context.sink.now()
        await inner.wait_closed()
        if self._left_at_once:
            self._mistrusted(None)

    @property
    def _left_at_once(self) -> bool:
        """Whether the client sent no request since it received the certificate, a moment ago."""
        return self._shown_at is not None and not self._asked and self.context.sink.now() - self._shown_at < _AT_ONCE_S

    async def _request(self, exchange: Exchange) -> None:
        self._asked += 1
        await self._answer(exchange, self.context, self._origin)

    # -- failures --------------------------------------------------------------------------------
    def _mistrusted(self, broken: OSError | None) -> None:
        """Records that nothing inside this connection was observed; a fault that waited for it was not met."""
        trace = self._event()
        why = f" ({broken.reason})" if isinstance(broken, ssl.SSLError) and broken.reason else ""
        trace.trouble = "certificate_refused"
        trace.output = f"the client left during the TLS handshake{why}"
        self.context.sink.note(
            f"a client rejected our certificate for {self._origin.host}{why}: its requests were not observed. "
            f"Programs trust it if they read {', '.join(TRUST_VARIABLES)}"
        )
        self.context.sink.add_error(
            f"a client rejected our certificate for {self._origin.host}: its call failed because of Holdfast",
            "certificate-refused",
        )

    async def _fail(self, failed: Failed) -> None:
        trace, exchange = self._event(), self._exchange
        try:
            if failed.kind != "tls":
                await send_failure(exchange, failed, trace)
                return
            exchange.ensure_connected()
            trace.trouble, trace.output = "tls_error", str(failed)
            self._unheard = True
            await _break_handshake(await exchange.take_over())
            self._unheard = False
        except ConnectionError:
            trace.trouble = "client_gone"
            trace.unfelt("the client had left")

    async def _turn_away(self, status: int, trouble: str, why: str) -> None:
        trace = self._event()
        trace.status, trace.trouble, trace.output = status, trouble, why
        if not self._exchange.is_answered:
            await self._exchange.respond(status, _TEXT, f"Holdfast: {why}\n".encode(errors="replace"))


async def _break_handshake(tunnel: Tunnel) -> None:
    """Answers the TLS hello with a fatal alert; raises ConnectionResetError if the client leaves first."""
    if not await tunnel.read():
        raise ConnectionResetError("the client had left")
    await tunnel.write(_ALERT)
    tunnel.close()


async def _connected(call: Call) -> Reply:
    return Reply(None)


async def _never(ms: float) -> None:
    raise RuntimeError("a fault of connecting does not wait")
