"""The client of the gateway's benchmark: one line of JSON in, one out; as cheap as a client can be.

It is started with the URLs to ask, and told `[what, which URL, ...]`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from httptools import HttpResponseParser

HEAD = (
    "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAuthorization: Bearer k\r\n"
    "Content-Length: {}\r\n\r\n"
)


class Place:
    """A URL, and requests to it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host, self.port, self._path = parts.hostname or "127.0.0.1", parts.port or 80, parts.path
        self._authority = parts.netloc

    def request(self, n: int, **more: float) -> bytes:
        """No two requests are the same: those of an agent are not."""
        asked = [{"role": "user", "content": f"What was the revenue in quarter {n}?"}]
        body = json.dumps({"model": "m", "messages": asked, **more})
        return (HEAD.format(self._path, self._authority, len(body)) + body).encode()


class Line(asyncio.Protocol):
    """A connection: one request at a time."""

    @classmethod
    async def to(cls, place: Place) -> Line:
        _, line = await asyncio.get_running_loop().create_connection(cls, place.host, place.port)
        return line

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self._done: asyncio.Future[bytes] | None = None

    async def ask(self, request: bytes) -> bytes:
        """The body of the reply."""
        self._parser, self._parts = HttpResponseParser(self), list[bytes]()
        self.first = 0.0
        self._done = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._done

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        self.first = self.first or time.perf_counter()
        self._parts.append(data)

    def on_message_complete(self) -> None:
        assert self._done is not None
        assert self._parser.get_status_code() == 200, b"".join(self._parts)
        self._done.set_result(b"".join(self._parts))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(ConnectionResetError("the connection was lost"))


async def p50(place: Place, times: int) -> float:
    """Milliseconds of a call, one after another."""
    line, taken = await Line.to(place), []
    for request in [place.request(n) for n in range(times)]:
        began = time.perf_counter()
        await line.ask(request)
        taken.append(time.perf_counter() - began)
    line.transport.close()
    return median(taken) * 1000


async def rate(place: Place, times: int, at_once: int) -> float:
    """Calls a second, so many in flight."""
    lines = [await Line.to(place) for _ in range(at_once)]
    left = iter([place.request(n) for n in range(times)])

    async def slot(line: Line) -> None:
        for request in left:
            assert b"Revenue" in await line.ask(request)
        line.transport.close()

    began = time.perf_counter()
    await asyncio.gather(*map(slot, lines))
    return times / (time.perf_counter() - began)


async def first_byte(place: Place, times: int) -> float:
    """Milliseconds until a stream begins."""
    line, taken = await Line.to(place), []
    for n in range(times):
        began = time.perf_counter()
        await line.ask(place.request(n, stream=True, chunks=3, pause=0.001))
        taken.append(line.first - began)
    line.transport.close()
    return median(taken) * 1000


async def streams(place: Place, count: int, chunks: int) -> dict[str, object]:
    """Streams at once: what came, and how long it took."""

    async def one(n: int) -> str:
        line = await Line.to(place)
        body = await line.ask(place.request(n, stream=True, chunks=chunks, pause=0.02))
        line.transport.close()
        return hashlib.sha256(body).hexdigest()

    began = time.perf_counter()
    digests = await asyncio.gather(*map(one, range(count)))
    return {"digests": sorted(set(digests)), "count": len(digests), "s": time.perf_counter() - began}


ALL: dict[str, Callable[..., Awaitable[object]]] = {
    "p50": p50,
    "rate": rate,
    "first_byte": first_byte,
    "streams": streams,
}


async def main() -> None:
    places = [Place(url) for url in sys.argv[1:]]
    for told in sys.stdin:
        name, which, *args = json.loads(told)
        print(json.dumps(await ALL[name](places[which], *args)), flush=True)


asyncio.run(main())
