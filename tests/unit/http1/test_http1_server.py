"""Requests as clients really send them, and what they get."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from example_counts import examples
from holdfast.http1.server import Exchange
from http1_kit import raw, run, serving, until


async def echo(exchange: Exchange) -> None:
    body = await exchange.read_body()
    await exchange.respond(200, [("X-Target", exchange.head.target)], exchange.head.method.encode() + b" " + body)


async def on_time(exchange: Exchange) -> None:
    """Answers without a look at the body."""
    await exchange.respond(503, body=b"no")


async def test_a_connection_serves_request_after_request() -> None:
    async with serving(echo) as listener, raw(listener.port) as client:
        for n in range(3):
            client.send(b"POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi" % n)
            assert await client.reply() == (200, {"x-target": f"/{n}", "content-length": "7"}, b"POST hi")
        assert len(listener.connections) == 1


async def test_pipelined_requests_are_answered_in_order() -> None:
    async def slow_first(exchange: Exchange) -> None:
        if exchange.head.target == "/0":
            await asyncio.sleep(0.02)
        await exchange.respond(200, body=exchange.head.target.encode())

    async with serving(slow_first) as listener, raw(listener.port) as client:
        client.send(b"".join(b"GET /%d HTTP/1.1\r\n\r\n" % n for n in range(50)))
        assert [(await client.reply())[2] for _ in range(50)] == [b"/%d" % n for n in range(50)]


async def test_too_many_requests_ahead_are_refused_after_those_that_were_taken() -> None:
    async with serving(echo) as listener, raw(listener.port) as client:
        client.send(b"GET / HTTP/1.1\r\n\r\n" * 3000)
        statuses = [(await client.reply())[0] for _ in range(257)]
        assert statuses[:256] == [200] * 256
        assert 400 in [*statuses, *([(await client.reply())[0]] if statuses[-1] == 200 else [])]


REQUESTS = (
    b"POST /a?b=c HTTP/1.1\r\nHost: x\r\nX-Empty:\r\nContent-Length: 11\r\n\r\nhello world",
    b"PUT /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\nT: v\r\n\r\n",
    b"GET http://example.com/c HTTP/1.1\r\nHost: example.com\r\n\r\n",
)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, sum(map(len, REQUESTS))), max_size=12))
def test_requests_mean_the_same_wherever_their_bytes_are_split(places: list[int]) -> None:
    stream = b"".join(REQUESTS)
    cuts = [0, *sorted(places), len(stream)]

    async def test() -> None:
        async with serving(echo) as listener, raw(listener.port) as client:
            for start, stop in pairwise(cuts):
                client.send(stream[start:stop])
                await asyncio.sleep(0)
            found = [await client.reply() for _ in REQUESTS]
            assert [(headers["x-target"], body) for _, headers, body in found] == [
                ("/a?b=c", b"POST hello world"),
                ("/b", b"PUT hello world"),
                ("http://example.com/c", b"GET "),
            ]

    run(test(), collect=False)


@settings(max_examples=examples(60), deadline=None)
@given(st.binary(min_size=1, max_size=300) | st.sampled_from(REQUESTS).flatmap(lambda r: st.binary().map(r.__add__)))
def test_any_input_ends_in_an_answer_or_a_closed_connection(junk: bytes) -> None:
    async def test() -> None:
        async with serving(echo) as listener, raw(listener.port) as client:
            client.send(junk)
            client.writer.write_eof()
            await client.rest()

    run(test(), collect=False)


@pytest.mark.parametrize(
    "request_",
    [
        b"\x16\x03\x01\x02\x00",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
async def test_a_request_that_cannot_be_read_gets_400_and_the_connection_ends(request_: bytes) -> None:
    async with serving(echo) as listener, raw(listener.port) as client:
        client.send(request_)
        status, headers, _ = await client.reply()
        assert (status, headers["connection"]) == (400, "close")
        assert await client.rest() == b""


async def test_the_requests_before_a_bad_one_are_answered() -> None:
    async with serving(echo) as listener, raw(listener.port) as client:
        client.send(b"GET /good HTTP/1.1\r\n\r\nnonsense\r\n\r\n")
        assert [(await client.reply())[0] for _ in range(2)] == [200, 400]


@pytest.mark.parametrize("ended", [True, False])
async def test_a_head_over_64_kb_gets_431(ended: bool) -> None:
    async with serving(echo) as listener, raw(listener.port) as client:
        client.send(b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000 + (b"\r\n\r\n" if ended else b""))
        assert (await client.reply())[0] == 431


async def test_a_head_just_under_64_kb_is_read() -> None:
    async with serving(echo) as listener, raw(listener.port) as client:
        client.send(b"GET / HTTP/1.1\r\nX: " + b"a" * 65_000 + b"\r\n\r\n")
        assert (await client.reply())[0] == 200


async def test_a_trailer_without_end_is_refused() -> None:
    async with serving(echo) as listener, raw(listener.port) as client:
        client.send(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: ")
        for _ in range(40):
            client.send(b"a" * 8000)
            await asyncio.sleep(0)
        assert (await client.reply())[0] == 431


@pytest.mark.parametrize(
    "request_",
    [
        b"POST / HTTP/1.1\r\nContent-Length: 5000000\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"400\r\n" + b"x" * 1024 + b"\r\n",
    ],
)
async def test_a_body_over_the_limit_gets_413(request_: bytes) -> None:
    async def limited(exchange: Exchange) -> None:
        await exchange.read_body(limit=1000)

    async with serving(limited) as listener, raw(listener.port) as client:
        client.send(request_ + b"y" * 2_000_000)
        assert (await client.reply())[0] == 413
        assert await client.rest() == b""


async def test_100_continue_is_sent_when_the_body_is_wanted_and_only_then() -> None:
    expecting = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"

    async with serving(echo) as listener, raw(listener.port) as client:
        client.send(expecting)
        assert await client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(b"hi")
        assert (await client.reply())[2] == b"POST hi"
        client.send(expecting + b"ho")
        assert (await client.reply())[2] == b"POST ho"
    async with serving(on_time) as listener, raw(listener.port) as client:
        client.send(expecting)
        status, headers, _ = await client.reply()
        assert (status, headers["connection"]) == (503, "close")


async def test_head_gets_the_length_but_no_body() -> None:
    async with serving(echo) as listener, raw(listener.port) as client:
        client.send(b"HEAD / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n")
        assert b"Content-Length: 5\r\n" in await client.head()
        assert (await client.reply())[2] == b"GET "


@pytest.mark.parametrize("status", [204, 304])
async def test_a_reply_without_body_stays_without(status: int) -> None:
    async def bodiless(exchange: Exchange) -> None:
        await exchange.respond(status, [("Content-Length", "7")], b"ignored")

    async with serving(bodiless) as listener, raw(listener.port) as client:
        client.send(b"GET / HTTP/1.1\r\n\r\n")
        head = await client.head()
        assert (b"Content-Length: 7" in head) == (status == 304)
        client.send(b"GET / HTTP/1.1\r\n\r\n")
        assert (await client.head()).startswith(b"HTTP/1.1 %d" % status)


async def test_http_1_0_gets_no_chunks_and_its_connection_ends_the_reply() -> None:
    async def streamed(exchange: Exchange) -> None:
        await exchange.start(200)
        await exchange.write(b"one ")
        await exchange.write(b"two")
        await exchange.finish()

    async with serving(streamed) as listener, raw(listener.port) as client:
        client.send(b"GET / HTTP/1.0\r\n\r\n")
        assert b"chunked" not in await client.head()
        assert await client.rest() == b"one two"
    async with serving(echo) as listener, raw(listener.port) as client:
        for _ in range(2):
            client.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            assert (await client.reply())[1]["connection"] == "keep-alive"


async def test_a_client_that_wants_to_close_is_closed_after_its_answer() -> None:
    async with serving(echo) as listener, raw(listener.port) as client:
        client.send(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert (await client.reply())[1]["connection"] == "close"
        assert await client.rest() == b""


async def test_a_small_body_that_nobody_read_costs_no_connection() -> None:
    async with serving(on_time) as listener, raw(listener.port) as client:
        for _ in range(3):
            client.send(b"POST / HTTP/1.1\r\nContent-Length: 3000\r\n\r\n")
            assert (await client.reply())[0] == 503
            client.send(b"x" * 3000)
        assert len(listener.connections) == 1


async def test_the_answer_arrives_although_the_client_is_still_sending() -> None:
    async with serving(on_time) as listener, raw(listener.port) as client:
        client.send(b"POST / HTTP/1.1\r\nContent-Length: 9000000\r\n\r\n" + b"x" * 6_000_000)
        status, headers, body = await client.reply()
        assert (status, headers["connection"], body) == (503, "close", b"no")
        assert await client.rest() == b""


async def test_an_upgrade_that_is_declined_is_an_ordinary_request_with_its_body() -> None:
    offer = b"POST /up HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 5\r\n\r\n"

    async with serving(echo) as listener, raw(listener.port) as client:
        client.send(offer + b"he")
        await asyncio.sleep(0.01)
        client.send(b"lloGET /next HTTP/1.1\r\n\r\n")
        assert (await client.reply())[2] == b"POST hello"
        assert (await client.reply())[1]["x-target"] == "/next"


async def test_headers_keep_their_order_and_spelling_and_are_found_in_any() -> None:
    seen = []

    async def look(exchange: Exchange) -> None:
        seen.append((exchange.head.headers, exchange.head.get("x-ONE"), exchange.head.get("missing")))
        await exchange.respond(200)

    async with serving(look) as listener, raw(listener.port) as client:
        client.send(b"GET / HTTP/1.1\r\nX-One: 1\r\nx-two: \xff\r\nX-One: 2\r\n\r\n")
        await client.reply()
        peer = next(iter(listener.connections)).peer
        assert peer == client.writer.get_extra_info("sockname")
    assert seen == [(((b"X-One", b"1"), (b"x-two", b"\xff"), (b"X-One", b"2")), "1", None)]


@pytest.mark.parametrize(
    "header", [("X", "a\r\nSet-Cookie: b"), ("X", "a\nb"), ("X", "a\0"), ("X: y\r\nZ", "a"), ("a b", "c")]
)
async def test_a_header_that_would_break_its_frame_is_refused(header: tuple[str, str]) -> None:
    refused = []

    async def inject(exchange: Exchange) -> None:
        try:
            await exchange.respond(200, [header])
        except ValueError as error:
            refused.append(error)
            await exchange.respond(500)

    async with serving(inject) as listener, raw(listener.port) as client:
        client.send(b"GET / HTTP/1.1\r\n\r\n")
        assert (await client.reply())[0] == 500
    assert len(refused) == 1


@pytest.mark.parametrize("way", ["raises", "silent", "half", "short"])
async def test_a_handler_that_does_not_answer_aborts_the_connection_and_is_reported(way: str) -> None:
    async def broken(exchange: Exchange) -> None:
        if way == "raises":
            raise KeyError("ours")
        if way != "silent":
            await exchange.start(200, length=10 if way == "short" else None)
            await exchange.write(b"half")
        if way == "short":
            await exchange.finish()

    reported: list[Exception] = []
    async with serving(broken) as listener, raw(listener.port) as client:
        listener.on_error = lambda _, error: reported.append(error)
        client.send(b"GET / HTTP/1.1\r\n\r\n")
        assert not (await client.rest()).endswith(b"0\r\n\r\n")
        await until(lambda: not listener.connections)
        expected = {"raises": KeyError, "silent": RuntimeError, "half": RuntimeError, "short": ValueError}
        assert [type(error) for error in reported] == [expected[way]]


async def test_a_second_reply_is_rejected() -> None:
    errors = []

    async def twice(exchange: Exchange) -> None:
        await exchange.respond(200)
        try:
            await exchange.respond(200)
        except RuntimeError as error:
            errors.append(error)

    async with serving(twice) as listener, raw(listener.port) as client:
        client.send(b"GET / HTTP/1.1\r\n\r\n")
        assert (await client.reply())[0] == 200
    assert len(errors) == 1
