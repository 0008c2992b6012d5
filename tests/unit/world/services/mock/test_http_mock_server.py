"""A mock as its clients meet it."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from golden_words import Golden
from holdfast.checks.state.mock_requests import MISSING, parse_body
from holdfast.model.scenario import Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.world import ServiceSpec
from holdfast.protocols.service import Mock
from holdfast.world.services.mock.routes import MockRoute
from holdfast.world.services.mock.server import BODY_KEPT, HttpMock, MockKeeper, decode_body

TRIAL = Trial("0", "contract", Scenario("calm"), Task(("?",)))


def play(scene: Callable[[HttpMock, aiohttp.ClientSession, str], Awaitable[Any]], *routes: MockRoute) -> Any:
    """A scene with a mock of these routes and a client."""

    async def whole() -> Any:
        keeper = MockKeeper(ServiceSpec("smtp", "http_mock"), routes, 404)
        mock = await keeper.provide(TRIAL, alone=False)
        host, port = mock.upstream
        try:
            async with aiohttp.ClientSession() as client:
                return await scene(mock, client, f"http://{host}:{port}")
        finally:
            await mock.close()
            await keeper.close()

    return asyncio.run(whole())


def test_a_mock_answers_by_its_routes_and_records_what_reached_it() -> None:
    async def scene(mock: HttpMock, client: aiohttp.ClientSession, url: str) -> None:
        assert isinstance(mock, Mock)
        async with client.post(f"{url}/api/messages?a=1", json={"to": "x"}, headers={"X-Key": "k"}) as reply:
            assert (reply.status, await reply.json(), reply.headers["x-b"]) == (202, {"ok": True}, "1")
        async with client.get(f"{url}/nowhere") as reply:
            assert (reply.status, await reply.text()) == (404, "")
        first, second = mock.requests
        assert (first.method, first.path, first.query, first.body) == ("POST", "/api/messages", "a=1", '{"to": "x"}')
        assert (first.status, first.response) == (202, '{"ok":true}')
        assert ("X-Key", "k") in first.headers
        assert (second.status, mock.dropped, mock.notes) == (404, 0, ())

    play(scene, MockRoute("/api/messages", "POST", 202, '{"ok":true}', {"X-B": "1", "Content-Length": "999"}))


def test_a_head_request_gets_no_body() -> None:
    async def scene(mock: HttpMock, client: aiohttp.ClientSession, url: str) -> None:
        async with client.head(f"{url}/a") as reply:
            assert (reply.status, await reply.read()) == (200, b"")
        async with client.get(f"{url}/a") as reply:
            assert await reply.text() == "text"

    play(scene, MockRoute("/a", response="text"))


def test_an_answer_comes_after_its_delay() -> None:
    async def scene(mock: HttpMock, client: aiohttp.ClientSession, url: str) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with client.get(f"{url}/slow"):
            assert loop.time() - began >= 0.2

    play(scene, MockRoute("/slow", delay_ms=200))


def test_a_request_counts_though_its_client_did_not_wait_for_the_answer() -> None:
    async def scene(mock: HttpMock, client: aiohttp.ClientSession, url: str) -> None:
        try:
            async with asyncio.timeout(0.3):
                await client.post(f"{url}/slow", data="paid")
        except TimeoutError:
            pass
        assert [one.body for one in mock.requests] == ["paid"]

    play(scene, MockRoute("/slow", "POST", delay_ms=60_000))


def test_a_long_body_is_cut_and_noted(golden: Golden) -> None:
    async def scene(mock: HttpMock, client: aiohttp.ClientSession, url: str) -> None:
        async with client.post(f"{url}/a", data=b"x" * (BODY_KEPT + 5)) as reply:
            assert reply.status == 404
        async with client.post(f"{url}/a", data=b"x" * BODY_KEPT) as reply:
            assert reply.status == 404
        assert [(len(one.body), one.cut) for one in mock.requests] == [(BODY_KEPT, True), (BODY_KEPT, False)]
        golden(mock.notes)

    play(scene)


def test_requests_at_the_same_time_each_use_a_time_up() -> None:
    async def scene(mock: HttpMock, client: aiohttp.ClientSession, url: str) -> list[int]:
        async def one() -> int:
            async with client.get(f"{url}/a") as reply:
                return reply.status

        return sorted(await asyncio.gather(*(one() for _ in range(8))))

    assert play(scene, MockRoute("/a", status=500, times=3), MockRoute("/a")) == [200] * 5 + [500] * 3


# What a mock understands of a body.


LIMIT = 1_000
MAIL = json.dumps({"to": "x@y"}).encode()


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("", MAIL),
        ("identity", MAIL),
        ("gzip", gzip.compress(MAIL, mtime=0)),
        ("deflate, gzip", gzip.compress(zlib.compress(MAIL), mtime=0)),
    ],
)
def test_an_encoding_is_undone(encoding: str, data: bytes) -> None:
    assert decode_body([("Content-Encoding", encoding)], data, LIMIT, cut=False) == (MAIL.decode(), False, "")


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("br", MAIL),
        ("gzip, br", MAIL),
        ("gzip," * 9, MAIL),
    ],
    ids=["unknown", "unknown-after-gzip", "too-many"],
)
def test_what_cannot_be_undone_is_said(encoding: str, data: bytes, golden: Golden) -> None:
    golden(decode_body([("content-encoding", encoding)], data, LIMIT, cut=False).unread)


@pytest.mark.parametrize(
    ("encoding", "data"),
    [("gzip", b"{}"), ("gzip", gzip.compress(MAIL, mtime=0)[:-9]), ("deflate", b'{"paid": true}')],
    ids=["not-gzip", "cut-gzip", "not-deflate"],
)
def test_a_body_with_a_false_encoding_is_known_to_be_no_json_and_keeps_its_text(encoding: str, data: bytes) -> None:
    found = decode_body([("content-encoding", encoding)], data, LIMIT, cut=False)
    assert found.unread == ""
    assert parse_body(found.text) is MISSING
    assert data.decode("utf-8", "replace") in found.text


def test_a_bomb_is_cut() -> None:
    bomb = gzip.compress(gzip.compress(bytes(50_000_000)))
    found = decode_body([("content-encoding", "gzip"), ("content-encoding", "gzip")], bomb, LIMIT, cut=False)
    assert (len(found.text) <= LIMIT, found.cut, found.unread) == (True, True, "")


def test_the_beginning_of_a_long_body_is_read_as_far_as_it_goes() -> None:
    found = decode_body([("content-encoding", "gzip")], gzip.compress(MAIL, mtime=0)[:-9], LIMIT, cut=True)
    assert (MAIL.decode().startswith(found.text), found.cut, found.unread) == (True, True, "")


@pytest.mark.parametrize(
    ("kind", "charset"),
    [
        ("application/json; charset=utf-16", "utf-16"),
        ("application/json", "utf-16-le"),
        ("application/json", "utf-8-sig"),
        ("text/plain; charset=latin-1", "latin-1"),
    ],
)
def test_a_charset_is_read(kind: str, charset: str) -> None:
    text = '{"to": "é@y"}'
    assert decode_body([("content-type", kind)], text.encode(charset), LIMIT, cut=False) == (text, False, "")


@pytest.mark.parametrize("charset", ["punycode", "zip", "no-such", "x" * 90])
def test_a_charset_that_is_not_known_is_said(charset: str, golden: Golden) -> None:
    found = decode_body([("content-type", f"text/plain; charset={charset}")], MAIL, LIMIT, cut=False)
    golden(found.unread)


def test_a_body_of_bytes_stays_what_it_was() -> None:
    assert decode_body([("content-type", "image/png")], b"\x89PNG\xff", LIMIT, cut=False) == ("�PNG�", False, "")
