"""A proxy made of the server, the client and `pump`: bytes in, the same bytes out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast.http1.client import UpstreamFailed, Upstreams
from holdfast.http1.heads import drop_hop_by_hop
from holdfast.http1.relay import forward_reply
from holdfast.http1.server import Exchange, Listener
from http1_kit import Raw, raw, run, serving, until, upstream


@asynccontextmanager
async def proxy(url: str, taps: list[bytes], failures: list[Exception]) -> AsyncIterator[Listener]:
    upstreams = Upstreams()

    async def pass_on(exchange: Exchange) -> None:
        body = await exchange.read_body()
        head = exchange.head
        reply = await upstreams.send(head.method, url + head.target, drop_hop_by_hop(head.headers), body)
        try:
            await forward_reply(exchange, reply, tap=taps.append)
        except (UpstreamFailed, ConnectionResetError) as error:
            failures.append(error)

    async with serving(pass_on) as listener:
        yield listener
    await upstreams.close()


def relayed(reply: bytes, request: bytes = b"GET / HTTP/1.1\r\n\r\n", *, close: bool = False) -> tuple[bytes, bytes]:
    """What the client gets for it, and what the tap saw."""
    taps: list[bytes] = []
    got: list[bytes] = []

    async def talk(peer: Raw) -> None:
        await peer.head()
        peer.send(reply)
        if not close:
            await peer.rest()

    async def test() -> None:
        async with upstream(talk) as url, proxy(url, taps, []) as listener, raw(listener.port) as client:
            client.send(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            got.append(await client.rest())

    run(test(), collect=False)
    return got[0], b"".join(taps)


def test_a_reply_with_a_length_keeps_it_and_its_headers_as_spelt() -> None:
    reply = b"HTTP/1.1 200 Fine By Me\r\nx-Odd: 1\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 5\r\n\r\nhello"
    assert relayed(reply) == (
        b"HTTP/1.1 200 Fine By Me\r\nx-Odd: 1\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 5\r\n"
        b"Connection: close\r\n\r\nhello",
        b"hello",
    )


@pytest.mark.parametrize("close", [False, True])
def test_a_reply_without_a_length_is_chunked(close: bool) -> None:
    framed = b"\r\n\r\nhello" if close else b"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    got, tapped = relayed(b"HTTP/1.1 200 OK" + framed, close=close)
    assert got.endswith(b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    assert tapped == b"hello"


def test_hop_by_hop_headers_stay_on_their_hop() -> None:
    got, _ = relayed(
        b"HTTP/1.1 200 OK\r\nConnection: X-Private, keep-alive\r\nX-Private: 1\r\nKeep-Alive: timeout=5\r\n"
        b"Proxy-Authenticate: Basic\r\nX-Public: 2\r\nContent-Length: 0\r\n\r\n"
    )
    assert got == b"HTTP/1.1 200 OK\r\nX-Public: 2\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("method", "reply"),
    [
        (b"HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"),
        (b"GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n"),
        (b"GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
    ],
)
def test_replies_without_body_pass_with_the_length_they_speak_of(method: bytes, reply: bytes) -> None:
    got, tapped = relayed(reply, method + b" / HTTP/1.1\r\n\r\n")
    assert got == reply.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert tapped == b""


def test_a_compressed_body_passes_as_it_is() -> None:
    body = bytes(range(256))
    got, tapped = relayed(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 256\r\n\r\n" + body)
    assert got.endswith(b"\r\n\r\n" + body)
    assert tapped == body


async def test_each_piece_of_a_stream_arrives_when_it_was_sent() -> None:
    step = asyncio.Event()

    async def talk(peer: Raw) -> None:
        await peer.head()
        peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for n in range(3):
            await step.wait()
            step.clear()
            peer.send(b"6\r\ndata %d\r\n" % n)
        await peer.rest()

    async with upstream(talk) as url, proxy(url, [], []) as listener, raw(listener.port) as client:
        client.send(b"GET / HTTP/1.1\r\n\r\n")
        await client.head()
        for n in range(3):
            step.set()
            assert await client.reader.readexactly(11) == b"6\r\ndata %d\r\n" % n


async def test_an_upstream_that_breaks_off_cuts_the_client_and_is_reported() -> None:
    async def talk(peer: Raw) -> None:
        await peer.head()
        peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")

    failures: list[Exception] = []
    async with upstream(talk) as url, proxy(url, [], failures) as listener, raw(listener.port) as client:
        client.send(b"GET / HTTP/1.1\r\n\r\n")
        await client.head()
        assert await client.rest() == b"5\r\nhello\r\n"
        await until(lambda: [type(error) for error in failures] == [UpstreamFailed])


async def test_a_client_that_leaves_ends_the_upstreams_connection() -> None:
    ended = asyncio.Event()

    async def talk(peer: Raw) -> None:
        await peer.head()
        peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while True:
                peer.send(b"5\r\nhello\r\n")
                await peer.writer.drain()
                await asyncio.sleep(0.001)
        finally:
            ended.set()

    failures: list[Exception] = []
    async with upstream(talk) as url, proxy(url, [], failures) as listener:
        async with raw(listener.port) as client:
            client.send(b"GET / HTTP/1.1\r\n\r\n")
            await client.head()
        await ended.wait()
        assert [type(error) for error in failures] == [ConnectionResetError]


async def test_a_hundred_concurrent_streams_lose_no_byte() -> None:
    whole = b"".join(b"data %03d " % n for n in range(40))

    async def talk(peer: Raw) -> None:
        await peer.head()
        peer.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
        for n in range(40):
            peer.send(b"9\r\ndata %03d \r\n" % n)
            await asyncio.sleep(0.002)
        peer.send(b"0\r\n\r\n")
        await peer.rest()

    async with upstream(talk) as url, proxy(url, [], []) as listener:

        async def one() -> bytes:
            async with raw(listener.port) as client:
                client.send(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
                return (await client.reply())[2]

        assert await asyncio.gather(*[one() for _ in range(100)]) == [whole] * 100
