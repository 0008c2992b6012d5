"""Requests as they leave, and the connections that are kept for the next."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from holdfast.http1.client import UpstreamFailed, Upstreams
from http1_kit import HELLO, Raw, run, saying, until, upstream


@pytest.mark.parametrize(
    ("method", "data"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"),
        ("HEAD", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n"),
    ],
)
async def test_replies_without_body_leave_the_connection_usable(method: str, data: bytes) -> None:
    connections = 0

    async def talk(peer: Raw) -> None:
        nonlocal connections
        connections += 1
        await saying(data, data, HELLO)(peer)

    async with upstream(talk) as url:
        upstreams = Upstreams()
        for _ in range(2):
            assert await (await upstreams.send(method, url)).read() == b""
        assert await (await upstreams.send("GET", url)).read() == b"hello world"
        await upstreams.close()
    assert connections == 1


async def test_connections_are_kept_and_dropped_when_idle_for_long() -> None:
    connections = 0

    async def talk(peer: Raw) -> None:
        nonlocal connections
        connections += 1
        await saying(*[HELLO] * 5)(peer)

    async with upstream(talk) as url:
        upstreams = Upstreams(idle_s=0.1)
        for _ in range(3):
            await (await upstreams.send("GET", url)).read()
        assert connections == 1
        await until(lambda: not upstreams._pool._open)
        assert not upstreams._pool._idle
        await (await upstreams.send("GET", url)).read()
        assert connections == 2
        await upstreams.close()


async def test_a_kept_connection_that_the_server_closed_is_tried_once_more_on_a_new_one() -> None:
    connections = 0

    async def talk(peer: Raw) -> None:
        nonlocal connections
        connections += 1
        await peer.head()
        peer.send(HELLO)
        if connections == 1:
            await peer.head()  # reads the second request and drops it
        else:
            await peer.rest()

    async with upstream(talk) as url:
        upstreams = Upstreams()
        for _ in range(2):
            assert await (await upstreams.send("POST", url, body=b"")).read() == b"hello world"
        await upstreams.close()
    assert connections == 2


@pytest.mark.parametrize("case", ["a stream", "half a reply", "a new connection"])
async def test_nothing_is_sent_twice_that_may_not_be(case: str) -> None:
    requests = 0

    async def talk(peer: Raw) -> None:
        nonlocal requests
        if case != "a new connection":
            await peer.head()
            peer.send(HELLO)
        await peer.head()
        requests += 1
        if case == "half a reply":
            peer.send(b"HTTP/1.1 200")

    async def chunks() -> AsyncIterator[bytes]:
        yield b"data"

    async with upstream(talk) as url:
        upstreams = Upstreams()
        if case != "a new connection":
            await (await upstreams.send("GET", url)).read()
        with pytest.raises(UpstreamFailed) as failed:
            await upstreams.send("POST", url, body=chunks() if case == "a stream" else b"x")
        assert failed.value.kind == "closed"
        await upstreams.close()
    assert requests == 1


async def test_a_connection_with_surplus_data_is_not_reused() -> None:
    connections = 0

    async def talk(peer: Raw) -> None:
        nonlocal connections
        connections += 1
        await saying(HELLO * 2)(peer)

    async with upstream(talk) as url:
        upstreams = Upstreams()
        for _ in range(2):
            assert await (await upstreams.send("GET", url)).read() == b"hello world"
        await upstreams.close()
    assert connections == 2


def request_seen(method: str, headers: list[tuple[str, str]], body: bytes | AsyncIterator[bytes] | None) -> bytes:
    seen: list[bytes] = []

    async def talk(peer: Raw) -> None:
        data = await peer.head()
        while b"0\r\n\r\n" not in data and b"hello world" not in data and body is not None:
            data += await peer.reader.read(1000)
        seen.append(data)
        peer.send(HELLO)
        await peer.rest()

    async def test() -> None:
        async with upstream(talk) as url:
            upstreams = Upstreams()
            reply = await upstreams.send(method, url + "/p?q=é", headers, body)
            await reply.read()
            seen.append(url.encode())
            await upstreams.close()

    run(test())
    return seen[0].replace(seen[1].removeprefix(b"http://"), b"HOST")


async def pieces() -> AsyncIterator[bytes]:
    for piece in (b"hello", b"", b" world"):
        await asyncio.sleep(0)
        yield piece


def test_a_request_is_sent_with_holdfasts_framing() -> None:
    headers = [
        ("X-Two", "2"),
        ("Connection", "X-Two"),
        ("content-length", "99"),
        ("Expect", "100-continue"),
        ("A", "b"),
    ]
    assert request_seen("POST", headers, b"hello world") == (
        b"POST /p?q=%C3%A9 HTTP/1.1\r\nHost: HOST\r\nX-Two: 2\r\nA: b\r\nContent-Length: 11\r\n\r\nhello world"
    )


def test_an_explicit_host_is_kept_and_a_get_has_no_length() -> None:
    assert request_seen("GET", [("A", "b"), ("HOST", "other")], None) == (
        b"GET /p?q=%C3%A9 HTTP/1.1\r\nA: b\r\nHOST: other\r\n\r\n"
    )


def test_a_stream_is_sent_in_chunks_or_with_its_declared_length() -> None:
    assert request_seen("POST", [], pieces()).endswith(b"chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n")
    assert request_seen("POST", [("Content-Length", "11")], pieces()).endswith(b"Content-Length: 11\r\n\r\nhello world")


async def test_a_stream_that_fails_or_is_not_as_long_as_declared_fails_the_request() -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield b"one"
        raise KeyError("ours")

    async with upstream(saying(b"")) as url:
        upstreams = Upstreams()
        with pytest.raises(KeyError):
            await upstreams.send("POST", url, body=failing())
        for length in ("5", "50"):
            with pytest.raises(ValueError, match="declared length"):
                await upstreams.send("POST", url, [("Content-Length", length)], pieces())
        await upstreams.close()


async def test_a_reply_may_come_before_the_request_is_at_its_end() -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 100
            await asyncio.sleep(0.001)

    async with upstream(saying(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")) as url:
        upstreams = Upstreams()
        reply = await upstreams.send("POST", url, body=endless())
        assert (reply.status, await reply.read()) == (413, b"no")
        await upstreams.close()


@pytest.mark.parametrize(
    ("method", "url", "headers"),
    [
        ("GET", "http://127.0.0.1/", [("X", "a\r\nHost: evil")]),
        ("GET", "http://127.0.0.1/", [("X\nY", "a")]),
        ("GET /\r\nX: y", "http://127.0.0.1/", []),
        ("GET", "http://127.0.0.1/a\r\nX: y", []),
        ("GET", "http://127.0.0.1/a b", []),
        ("GET", "file:///etc/passwd", []),
        ("GET", "http:///path", []),
    ],
)
async def test_a_request_that_would_break_its_frame_is_refused(
    method: str, url: str, headers: list[tuple[str, str]]
) -> None:
    with pytest.raises(ValueError, match=r"not a|must not"):
        await Upstreams().send(method, url, headers)


async def test_a_slow_taker_stops_the_server_and_loses_nothing() -> None:
    sent = 0
    total = 30_000_000

    async def flood(peer: Raw) -> None:
        nonlocal sent
        await peer.head()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % total)
        while sent < total:
            peer.send(b"x" * 100_000)
            await peer.writer.drain()
            sent += 100_000
        await peer.rest()

    async with upstream(flood) as url:
        upstreams = Upstreams()
        reply = await upstreams.send("GET", url, read_s=0.1)
        before = -1
        while sent != before:
            before = sent
            await asyncio.sleep(0.15)  # longer than read_s: it is not the server who is slow
        assert reply.inflow.waiting < 1_000_000
        assert sent < total
        assert sum([len(data) async for data in reply.stream_body()]) == total
        await upstreams.close()


async def test_a_reply_over_the_limit_is_aborted() -> None:
    async with upstream(saying(HELLO, then="close")) as url:
        upstreams = Upstreams()
        with pytest.raises(UpstreamFailed):
            await (await upstreams.send("GET", url)).read(limit=5)
        await upstreams.close()


async def test_aborting_or_leaving_a_reply_ends_its_connection() -> None:
    ended = 0

    async def endless(peer: Raw) -> None:
        nonlocal ended
        await peer.head()
        peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await peer.rest()
        ended += 1

    async with upstream(endless) as url:
        upstreams = Upstreams()
        (await upstreams.send("GET", url)).abort()
        chunks = (await upstreams.send("GET", url)).stream_body()
        assert await anext(chunks) == b"hello"
        await chunks.aclose()  # type: ignore[attr-defined]
        task = asyncio.create_task((await upstreams.send("GET", url)).read())
        await asyncio.sleep(0.01)
        task.cancel()
        await until(lambda: ended == 3 and not upstreams._pool._open)
        reply = await upstreams.send("GET", url)
        await upstreams.close()
        with pytest.raises(UpstreamFailed):
            await reply.read()


async def test_cancelling_a_request_ends_its_connection() -> None:
    async with upstream(saying(b"")) as url:
        upstreams = Upstreams()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(upstreams.send("GET", url), 0.05)
        await until(lambda: not upstreams._pool._open)
        await upstreams.close()
