"""The client that asks an agent: sends a request and brings back whatever came, also from an exchange that broke.

Nothing here is done per request that can be done once: the connections, the headers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from math import inf
from time import perf_counter

from msgspec import Struct

from holdfast.agents.http_connection import HttpReply
from holdfast.agents.http_content import Unpackable, text_type, unpacked
from holdfast.agents.http_cookies import CookieJar
from holdfast.agents.http_head import FixedHead
from holdfast.agents.http_pool import HttpPool, NotConnected, Taken
from holdfast.agents.http_request import HttpRequest
from holdfast.agents.http_unreachable import unreachable
from holdfast.agents.http_url import HttpUrl
from holdfast.errors import AgentUnavailable
from holdfast.http1.heads import value_of
from holdfast.model.observation import EndingKind

BODY_LIMIT = 10_000_000


class HttpExchange(Struct):
    """What one request came to, as bytes."""

    ending: EndingKind = "answered"
    detail: str = ""
    status: int | None = None
    content_type: str = ""
    charset: str | None = None
    location: str = ""
    body: bytes = b""
    cut: bool = False
    latency_ms: float = 0.0
    retried: bool = False
    note: str = ""
    """What the reader should know of how it was asked."""


class HttpClient:
    """Asks one agent. Open it inside a running loop; close it after use."""

    def __init__(
        self, url: HttpUrl, headers: Mapping[str, str], *, timeout_ms: int, limit: int, keep: bool = True
    ) -> None:
        """`keep`: connections stay open between requests; a server that has one at a time then serves nobody else.

        AgentUnavailable (config) for headers that cannot be sent.
        """
        self.url = url
        try:
            self.head = FixedHead(url, headers, keep=keep)
        except ValueError as wrong:
            raise self._impossible(wrong) from wrong
        self.timeout_s = timeout_ms / 1000
        self._pool = HttpPool(url.endpoint, limit=limit, keep=keep, body_limit=BODY_LIMIT)
        self._time = asyncio.get_running_loop().time

    def cookies(self) -> CookieJar:
        """A jar for the requests of one trial."""
        return CookieJar(self.url, self.head.cookie)

    async def send(
        self, request: HttpRequest, cookies: CookieJar | None = None, limit_s: float = inf, taken: Taken = bool
    ) -> HttpExchange:
        """Makes the exchange, within `limit_s` if that is less than the usual time.

        AgentUnavailable if no connection or no request could be made at all.
        """
        limit_s = min(self.timeout_s, limit_s)
        if limit_s <= 0:
            return HttpExchange("timeout", "no time was left to ask it")
        start = perf_counter()
        method, target, body = request
        try:
            data = self.head.written(method, target, body, self.head.cookie if cookies is None else cookies.header)
            reply, retried = await self._pool.ask(method, data, self._time() + limit_s, taken)
        except NotConnected as gone:
            raise unreachable(gone.failed.kind, gone.__cause__, self.url, limit_s) from gone
        except ValueError as wrong:
            raise self._impossible(wrong) from wrong
        latency_ms = (perf_counter() - start) * 1000
        if cookies is not None:
            cookies.take(reply.headers)
        exchange = exchange_of(reply, limit_s)
        exchange.latency_ms, exchange.retried = latency_ms, retried
        return exchange

    async def close(self) -> None:
        await self._pool.close()

    def _impossible(self, wrong: ValueError) -> AgentUnavailable:
        return AgentUnavailable(f"no request can be made to {self.url.shown}: {wrong}", config=True)


def exchange_of(reply: HttpReply, limit_s: float) -> HttpExchange:
    """What a reply, or what came of it within `limit_s`, says."""
    ending, detail = _ending(reply, limit_s)
    if reply.status is None:
        return HttpExchange(ending, detail)
    fields = reply.headers
    try:
        body = unpacked(fields, reply.body, BODY_LIMIT, whole=ending == "answered" and not reply.cut)
    except Unpackable as wrong:
        body = wrong.found
        if ending == "answered":
            ending, detail = "unreadable", str(wrong)
    content_type, charset = text_type(fields)
    return HttpExchange(
        ending=ending,
        detail=detail,
        status=reply.status,
        content_type=content_type,
        charset=charset,
        location=(value_of(fields, "location") or "") if 300 <= reply.status < 400 else "",
        body=body[:BODY_LIMIT],
        cut=reply.cut or len(body) > BODY_LIMIT,
    )


def _ending(reply: HttpReply, limit_s: float) -> tuple[EndingKind, str]:
    """How the exchange ended."""
    if reply.late:
        return "timeout", f"no answer within {limit_s * 1000:.0f} ms"
    failure = reply.failure
    if failure is None:
        return "answered", ""
    if reply.status is not None:
        why = "" if failure.kind == "closed" else f" ({failure.message[:200]})"
        return "closed", f"the connection broke in the middle of the answer{why}"
    if failure.kind == "protocol":
        return "closed", f"the reply is not HTTP: {failure.message[:200]}"
    return "closed", "the connection was closed before an answer"
