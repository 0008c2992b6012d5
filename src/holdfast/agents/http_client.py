"""One pooled HTTP client: sends a request and brings back whatever came, also from an exchange that broke.

Nothing here is done per request that can be done once: the pool, the headers, the timeout.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from math import inf
from time import perf_counter

import aiohttp
from aiohttp.http import HttpProcessingError

from holdfast import __version__
from holdfast.agents.http_pool import Pool, RequestProgress, attempt_now
from holdfast.agents.http_request import HttpRequest
from holdfast.agents.http_unreachable import shown, unreachable
from holdfast.errors import AgentUnavailable
from holdfast.model.observation import EndingKind

BODY_LIMIT = 10_000_000
_STALE_S = 0.5
"""That the server had closed an idle connection shows within a round trip. Later, it had the request."""
_RAW_LIMIT = 1_000_000
"""aiohttp wants larger bodies as files, so that writing one does not hold up the others."""
_HEADER_LIMIT = 65_536


@dataclass(slots=True)
class HttpExchange:
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


class HttpClient:
    """A pool of connections to one agent. Open it inside a running loop; close it after use."""

    def __init__(self, *, headers: dict[str, str], timeout_ms: int, limit: int, keep: bool = True) -> None:
        """`keep`: connections stay open between requests; a server that has one at a time then serves nobody else."""
        named = {name.lower() for name in headers}
        self._headers = headers if "user-agent" in named else {"User-Agent": f"holdfast/{__version__}", **headers}
        self._timeout_s = timeout_ms / 1000
        self._pool = Pool(limit=limit, keep=keep)
        self._unpooled = Pool(limit=limit, keep=False)
        self._session = self._new_session(self._pool, aiohttp.DummyCookieJar())

    def conversation(self) -> aiohttp.ClientSession:
        """A session with cookies of its own, on the same pool; the caller closes it."""
        return self._new_session(self._pool, aiohttp.CookieJar(unsafe=True))

    async def send(
        self, request: HttpRequest, session: aiohttp.ClientSession | None = None, limit_s: float = inf
    ) -> HttpExchange:
        """Makes the exchange, within `limit_s` if that is less than the usual time.

        AgentUnavailable if no connection or no request could be made at all.
        """
        session = session or self._session
        start = perf_counter()
        limit_s = min(self._timeout_s, limit_s)
        if limit_s <= 0:
            return HttpExchange("timeout", "no time was left to ask it")
        exchange, stale = await self._try(session, request, start, limit_s)
        if not stale:
            return exchange
        left_s = limit_s - (perf_counter() - start)
        async with self._new_session(self._unpooled, session.cookie_jar, left_s) as fresh:
            exchange, _ = await self._try(fresh, request, start, limit_s)
        exchange.retried = True
        return exchange

    async def close(self) -> None:
        await self._session.close()
        await self._pool.close()
        await self._unpooled.close()

    def _new_session(
        self, pool: Pool, jar: aiohttp.abc.AbstractCookieJar, total_s: float | None = None
    ) -> aiohttp.ClientSession:
        total_s = total_s or self._timeout_s
        session = aiohttp.ClientSession(
            connector=pool,
            connector_owner=False,
            cookie_jar=jar,
            headers=self._headers,
            timeout=_limit(total_s),
            max_line_size=_HEADER_LIMIT,
            max_field_size=_HEADER_LIMIT,
        )
        # aiohttp repeats a GET, PUT or DELETE on any lost connection, which would hide an agent that crashed.
        session._retry_connection = False
        return session

    async def _try(
        self, session: aiohttp.ClientSession, request: HttpRequest, start: float, limit_s: float
    ) -> tuple[HttpExchange, bool]:
        """The exchange, and whether it only met a connection that the server had closed while it was idle."""
        attempt = RequestProgress()
        attempt_now.set(attempt)
        ending: EndingKind = "answered"
        detail = ""
        stale = False
        try:
            await _transfer(session, request, attempt, _limit(limit_s) if limit_s < self._timeout_s else None)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            ending, detail = self._broken(error, attempt, request, limit_s)
            stale = ending == "closed" and attempt.untaken and perf_counter() - start < _STALE_S
        return _exchange(attempt, ending, detail, (perf_counter() - start) * 1000), stale

    def _broken(
        self,
        error: aiohttp.ClientError | OSError | ValueError,
        attempt: RequestProgress,
        request: HttpRequest,
        limit_s: float,
    ) -> tuple[EndingKind, str]:
        """How an exchange that raised ended; raises AgentUnavailable if it never began."""
        dialling = attempt.dialled and not attempt.connected
        if dialling or isinstance(error, aiohttp.ClientConnectorError):
            raise unreachable(error, request.url, limit_s) from error
        if isinstance(error, TimeoutError):
            return "timeout", f"no answer within {limit_s * 1000:.0f} ms"
        if isinstance(error, ValueError):
            raise AgentUnavailable(f"no request can be made to {shown(request.url)}: {error}", config=True) from error
        if isinstance(error, aiohttp.ClientPayloadError) and "content-encoding" in str(error).lower():
            return "unreadable", "the body is not what its Content-Encoding says"
        return "closed", _how_closed(error, attempt)


def _limit(total_s: float) -> aiohttp.ClientTimeout:
    """Above its threshold aiohttp rounds a deadline up to a whole second."""
    return aiohttp.ClientTimeout(total=total_s, sock_connect=total_s, ceil_threshold=total_s + 1)


async def _transfer(
    session: aiohttp.ClientSession, request: HttpRequest, attempt: RequestProgress, limit: aiohttp.ClientTimeout | None
) -> None:
    method, url, body = request
    data = body if body is None or len(body) <= _RAW_LIMIT else BytesIO(body)
    async with session.request(
        method, url, data=data, allow_redirects=False, timeout=limit or session.timeout
    ) as response:
        attempt.response = response
        attempt.cut = await _read(response.content, attempt.chunks)
        if attempt.cut:
            response.close()


async def _read(content: aiohttp.StreamReader, chunks: list[bytes]) -> bool:
    """Collects the body up to its limit; true if there was more."""
    left = BODY_LIMIT
    while not content.at_eof():
        chunk = await content.readany()
        chunks.append(chunk[:left])
        left -= len(chunk)
        if left < 0:
            return True
    return False


def _exchange(attempt: RequestProgress, ending: EndingKind, detail: str, latency_ms: float) -> HttpExchange:
    response = attempt.response
    if response is None:
        return HttpExchange(ending=ending, detail=detail, latency_ms=latency_ms)
    chunks = attempt.chunks
    return HttpExchange(
        ending=ending,
        detail=detail,
        status=response.status,
        content_type=response.content_type,
        charset=response.charset,
        location=response.headers.get("Location", ""),
        body=chunks[0] if len(chunks) == 1 else b"".join(chunks),
        cut=attempt.cut,
        latency_ms=latency_ms,
    )


def _how_closed(error: aiohttp.ClientError | OSError | ValueError, attempt: RequestProgress) -> str:
    if attempt.response is not None:
        return f"the connection broke in the middle of the answer ({type(error).__name__})"
    if isinstance(error, aiohttp.ClientResponseError | HttpProcessingError):
        return f"the reply is not HTTP: {' '.join(error.message.split())[:200]}"
    return f"the connection was closed before an answer ({type(error).__name__})"
