"""Servers as they really answer, and what the client makes of it."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from example_counts import examples
from holdfast.http1.client import UpstreamFailed, Upstreams
from holdfast.http1.server import Exchange
from http1_kit import HELLO, Raw, Talk, contexts, run, saying, serving, upstream


def asked(talk: Talk, *, method: str = "GET", **options: float) -> tuple[int, bytes]:
    """One request: status and body. What goes wrong is raised."""
    found: list[tuple[int, bytes]] = []
    failed: list[UpstreamFailed] = []

    async def test() -> None:
        async with upstream(talk) as url:
            upstreams = Upstreams()
            try:
                reply = await upstreams.send(method, url + "/x", **options)  # type: ignore[arg-type]
                found.append((reply.status, await reply.read()))
            except UpstreamFailed as error:
                failed.append(error)
            finally:
                await upstreams.close()

    run(test(), collect=False)
    if failed:
        raise failed[0]
    return found[0]


REPLIES = {
    "length": (HELLO, "wait"),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "wait"),
    "until close": (b"HTTP/1.1 200 OK\r\n\r\nhello world", "close"),
    "http 1.0": (b"HTTP/1.0 200 OK\r\n\r\nhello world", "close"),
    "after 1xx": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + HELLO,
        "wait",
    ),
}


@pytest.mark.parametrize("kind", REPLIES)
def test_a_body_ends_as_the_server_says(kind: str) -> None:
    data, then = REPLIES[kind]
    assert asked(saying(data, then=then)) == (200, b"hello world")


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(REPLIES)), st.lists(st.integers(0, 150), max_size=10))
def test_replies_mean_the_same_wherever_their_bytes_are_split(kind: str, places: list[int]) -> None:
    data, then = REPLIES[kind]
    cuts = [0, *sorted(min(place, len(data)) for place in places), len(data)]

    async def talk(peer: Raw) -> None:
        await peer.head()
        for start, stop in pairwise(cuts):
            peer.send(data[start:stop])
            await asyncio.sleep(0)
        if then == "wait":
            await peer.rest()

    assert asked(talk) == (200, b"hello world")


@settings(max_examples=examples(60), deadline=None)
@given(st.binary(max_size=200) | st.sampled_from([d for d, _ in REPLIES.values()]).map(lambda d: d[: len(d) // 2]))
def test_any_server_data_ends_in_a_reply_or_a_failure(junk: bytes) -> None:
    kinds = {"protocol", "closed", "none"}
    try:
        asked(saying(junk, then="close"))
        kind = "none"
    except UpstreamFailed as failed:
        kind = failed.kind
    assert kind in kinds


def test_a_reply_that_breaks_off_or_is_none_is_reported_by_kind() -> None:
    for data, kind in [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf", "closed"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", "closed"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "closed"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "protocol"),
        (b"HTTP/1.1 200 OK\r\nConte", "closed"),
        (b"", "closed"),
        (b"220 mail ready\r\n", "protocol"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", "protocol"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000, "protocol"),
        (b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nabc", "protocol"),
    ]:
        with pytest.raises(UpstreamFailed) as failed:
            asked(saying(data, then="close"))
        assert failed.value.kind == kind, (data, kind)


def test_a_silent_server_times_out() -> None:
    for data in (b"", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf"):
        with pytest.raises(UpstreamFailed) as failed:
            asked(saying(data), read_s=0.05)
        assert failed.value.kind == "timeout"


def test_read_s_is_between_chunks_not_for_the_whole() -> None:
    async def dripping(peer: Raw) -> None:
        await peer.head()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n")
        for n in range(8):
            await asyncio.sleep(0.1)
            peer.send(b"%d" % n)
        await peer.rest()

    assert asked(dripping, read_s=0.5) == (200, b"01234567")


async def test_failures_to_connect_are_reported_by_kind() -> None:
    async def silent(peer: Raw) -> None:
        await peer.rest()

    upstreams = Upstreams()
    server, _ = contexts()

    async def kind(url: str, connect_s: float = 5) -> str:
        with pytest.raises(UpstreamFailed) as failed:
            await upstreams.send("GET", url, connect_s=connect_s)
        return failed.value.kind

    assert await kind("http://127.0.0.1:1/") == "refused"
    assert await kind("http://no..name/") == "dns"
    async with upstream(silent) as url, upstream(silent, ssl=server) as untrusted:
        assert await kind(url.replace("http", "https"), 0.1) == "timeout"
        assert await kind(untrusted) == "tls"
    await upstreams.close()
    assert await kind("http://127.0.0.1:1/") == "closed"


async def test_tls_checks_the_name_of_the_url_at_another_address() -> None:
    server, trusting = contexts()

    async with upstream(saying(HELLO), ssl=server) as url:
        upstreams = Upstreams(lambda: trusting)
        named = url.replace("127.0.0.1", "localhost")
        reply = await upstreams.send("GET", named, addresses=("127.0.0.1",))
        assert await reply.read() == b"hello world"
        await upstreams.close()


async def test_a_write_that_must_go_out_once_takes_a_new_connection() -> None:
    ports = []

    async def answer(exchange: Exchange) -> None:
        ports.append(exchange.connection.peer[1])
        await exchange.respond(200)

    async with serving(answer) as listener:
        upstreams = Upstreams()
        for once in (False, False, True):
            await (await upstreams.send("POST", f"http://127.0.0.1:{listener.port}/", body=b"x", once=once)).read()
        await upstreams.close()
    assert ports[0] == ports[1] != ports[2]
