"""A mock as its clients meet it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

from golden_words import Golden
from holdfast.model.scenario import Scenario
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.world import ServiceSpec
from holdfast.protocols.service import Mock
from holdfast.world.services.mock.routes import MockRoute
from holdfast.world.services.mock.server import BODY_KEPT, HttpMock, MockKeeper

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
