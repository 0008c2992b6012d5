"""The client of an HTTP agent: it sends a request and returns whatever arrived, even if the exchange failed.

Connections and headers are prepared once, not per request.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import ssl
from collections.abc import Mapping
from functools import lru_cache
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING

from msgspec import Struct

from holdfast.agents.http.reply_headers import CookieJar, read_content_type, unpack_body
from holdfast.agents.http.request import HttpRequest, HttpUrl
from holdfast.errors import AgentMisconfigured, AgentUnavailable
from holdfast.http1.client import Upstreams, WasAccepted
from holdfast.http1.heads import find_header, format_header_lines, join_head
from holdfast.http1.outgoing_request import OutgoingRequest
from holdfast.http1.reply_parser import CollectedReply
from holdfast.model.observation import EndingKind
from holdfast.streams.sockets import FailureKind, NotConnected
from holdfast.version import __version__

if TYPE_CHECKING:
    from ssl import SSLContext


def make_unreachable_error(
    kind: FailureKind, error: BaseException | None, url: HttpUrl, timeout_s: float
) -> AgentUnavailable:
    """Return the error for an agent that accepted no connection, with the system's message."""
    why, hint = _explain_failure(kind, error, url, timeout_s)
    return AgentUnavailable(f"cannot reach the agent at {url.display_text}: {why}", code="agent-unreachable", hint=hint)


def _explain_failure(kind: FailureKind, error: BaseException | None, url: HttpUrl, timeout_s: float) -> tuple[str, str]:
    if kind == "timeout":
        return f"no connection within {timeout_s * 1000:.0f} ms", "check host, port and firewall of agent.endpoint"
    if kind == "dns":
        return f"unknown host {url.endpoint.host}", "check the host name in agent.endpoint"
    if kind == "tls":
        if isinstance(error, ssl.SSLCertVerificationError):
            return (
                "its certificate is not trusted",
                "set SSL_CERT_FILE to the certificate of its authority",
            )
        return "it does not speak TLS as expected", "check whether agent.endpoint should start with http://"
    if isinstance(error, OSError):
        return _explain_system_error(error)
    return f"the connection failed ({type(error).__name__})", "check that agent.endpoint names an HTTP server"


def _explain_system_error(error: OSError) -> tuple[str, str]:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "too many open files on this machine", "lower advanced.concurrency or raise `ulimit -n`"
    if isinstance(error, ConnectionRefusedError) or "refused" in str(error).lower():
        return "connection refused", "start the agent, or correct agent.endpoint"
    return error.strerror or str(error), "check that the agent runs and agent.endpoint is right"


_METHOD = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_FRAMING = frozenset((b"content-length", b"transfer-encoding"))
_WITH_BODY = frozenset(("POST", "PUT", "PATCH"))
_NOTHING: frozenset[bytes] = frozenset()
BODY_LIMIT = 10_000_000


class HttpExchange(Struct):
    """The result of one request, as bytes."""

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
    """A note about how the request was sent."""


class HttpClient:
    """Sends requests to one agent. Open it inside a running loop; close it after use."""

    def __init__(
        self, url: HttpUrl, headers: Mapping[str, str], *, timeout_ms: int, limit: int, keep: bool = True
    ) -> None:
        """`keep` leaves connections open between requests, which blocks a server that serves one connection at a time.

        Raises AgentUnavailable (config) for headers that cannot be sent.
        """
        self.url = url
        try:
            self.head = FixedHead(url, headers, keep=keep)
        except ValueError as wrong:
            raise self._make_config_error(wrong) from wrong
        self.timeout_s = timeout_ms / 1000
        self._upstreams = Upstreams(load_certificates, max_idle=limit if keep else 0, lenient=True)
        self._turns = asyncio.Semaphore(limit)
        self._time = asyncio.get_running_loop().time

    def make_cookie_jar(self) -> CookieJar:
        """Return a cookie jar for the requests of one trial."""
        return CookieJar(self.url, self.head.cookie)

    async def send(
        self, request: HttpRequest, cookies: CookieJar | None = None, limit_s: float = inf, accepted: WasAccepted = bool
    ) -> HttpExchange:
        """Send the request, within `limit_s` if that is less than the usual time.

        Raises AgentUnavailable if no connection or no request could be made.
        """
        limit_s = min(self.timeout_s, limit_s)
        if limit_s <= 0:
            return HttpExchange("timeout", "no time was left to call the agent")
        start = perf_counter()
        method, target, body = request
        try:
            data = self.head.write_request(
                method, target, body, self.head.cookie if cookies is None else cookies.header
            )
            reply, retried = await self._ask(OutgoingRequest(method, data, b""), self._time() + limit_s, accepted)
        except NotConnected as gone:
            raise make_unreachable_error(gone.kind, gone.__cause__, self.url, limit_s) from gone
        except ValueError as wrong:
            raise self._make_config_error(wrong) from wrong
        latency_ms = (perf_counter() - start) * 1000
        if cookies is not None:
            cookies.store(reply.headers)
        exchange = make_exchange(reply, limit_s)
        exchange.latency_ms, exchange.retried = latency_ms, retried
        return exchange

    async def _ask(
        self, request: OutgoingRequest, deadline: float, accepted: WasAccepted
    ) -> tuple[CollectedReply, bool]:
        """Wait for a free connection and send the request; return whether it needed a second connection."""
        try:
            async with asyncio.timeout_at(deadline):
                await self._turns.acquire()
        except TimeoutError:
            return CollectedReply(late=True), False
        try:
            return await self._upstreams.collect(request, self.url.endpoint, deadline, BODY_LIMIT, accepted)
        finally:
            self._turns.release()

    async def close(self) -> None:
        await self._upstreams.close()

    def _make_config_error(self, wrong: ValueError) -> AgentUnavailable:
        return AgentMisconfigured(f"cannot build a request to {self.url.display_text}: {wrong}")


def make_exchange(reply: CollectedReply, limit_s: float) -> HttpExchange:
    """Return the exchange for a complete or partial reply."""
    ending, detail = _classify_ending(reply, limit_s)
    if reply.status is None:
        return HttpExchange(ending, detail)
    fields = reply.headers
    body, problem = unpack_body(fields, reply.body, BODY_LIMIT, complete=ending == "answered" and not reply.cut)
    if problem and ending == "answered":
        ending, detail = "unreadable", problem
    content_type, charset = read_content_type(fields)
    return HttpExchange(
        ending=ending,
        detail=detail,
        status=reply.status,
        content_type=content_type,
        charset=charset,
        location=(find_header(fields, "location") or "") if 300 <= reply.status < 400 else "",
        body=body[:BODY_LIMIT],
        cut=reply.cut or len(body) > BODY_LIMIT,
    )


def _classify_ending(reply: CollectedReply, limit_s: float) -> tuple[EndingKind, str]:
    """Return how the exchange ended."""
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


def load_certificates() -> SSLContext:
    """Return the certificates to check servers against: the system's, or those that the user's variables name.

    Slow to load.
    """
    return _load_certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@lru_cache(1)
def _load_certificates(file: str | None, folder: str | None) -> SSLContext:
    # The variables are arguments because the result is cached; ssl itself reads them.
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class FixedHead:
    """The unchanging headers of every request to one server."""

    def __init__(self, url: HttpUrl, headers: Mapping[str, str], *, keep: bool) -> None:
        """`keep` lets the server keep the connection open. Raises ValueError for a header that cannot be sent."""
        by_name = {name.lower(): (name, value) for name, value in headers.items()}
        self.cookie = by_name.pop("cookie", ("", ""))[1]
        """The cookies of the spec."""
        authorization, host = url.authorization, url.endpoint.authority
        if authorization is not None and "authorization" in by_name:
            raise ValueError("a user in the URL and an Authorization header cannot be combined")
        fields = {
            "host": ("Host", host if host.isascii() else host.encode("idna").decode()),
            "user-agent": ("User-Agent", f"holdfast/{__version__}"),
            "accept": ("Accept", "*/*"),
            "accept-encoding": ("Accept-Encoding", "gzip, deflate"),
            **({"authorization": ("Authorization", authorization)} if authorization else {}),
            **({} if keep else {"connection": ("Connection", "close")}),
            **by_name,
        }
        rest, names = format_header_lines(
            [(name.encode(), value.encode()) for name, value in fields.values()], _NOTHING
        )
        if framing := _FRAMING.intersection(names):
            raise ValueError(f"the header {min(framing).decode()} is computed from the body and cannot be set")
        join_head(self.cookie.encode(), rest)  # raises for a line break
        self.lines = tuple(rest)
        """The header lines without their line ends."""
        self._lines = b"".join([line + b"\r\n" for line in rest])

    def write_request(self, method: str, target: str, body: bytes | None, cookie: str) -> bytes:
        """Return a complete request; `target` needs no more quoting. Raises ValueError for an invalid method."""
        if method not in _WITH_BODY and not _METHOD.fullmatch(method):
            raise ValueError(f"not an HTTP method: {method[:80]!r}")
        # One concatenation per request: everything that is the same for all of them was encoded when the agent was
        # opened.
        first = f"{method} {target} HTTP/1.1\r\n".encode()
        cookies = b"Cookie: %b\r\n" % cookie.encode() if cookie else b""
        if body is None and method not in _WITH_BODY:
            return b"%b%b%b\r\n" % (first, self._lines, cookies)
        body = body or b""
        return b"%b%b%bContent-Length: %d\r\n\r\n%b" % (first, self._lines, cookies, len(body), body)
