"""No more requests at once than the limit; who waits for a turn has it counted as time, and loses none for others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from agent_http_servers import raw_server, read_request
from golden_words import Golden
from holdfast.agents.http.client import HttpClient
from holdfast.agents.http.request import HttpRequest, read_url

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ASKED = HttpRequest("POST", "/ask", b"{}")


def with_client(use: Callable[[HttpClient, asyncio.Event], Awaitable[None]]) -> None:
    """`use` gets a client of one connection, and an event without which the server answers nothing."""

    async def go() -> None:
        answering = asyncio.Event()

        async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while True:
                    await read_request(reader)
                    await answering.wait()
                    writer.write(OK)
            except asyncio.IncompleteReadError:
                return

        async with raw_server(handler) as url:
            client = HttpClient(read_url(url), {}, timeout_ms=5000, limit=1)
            try:
                await use(client, answering)
            finally:
                answering.set()
                await client.close()

    asyncio.run(go())


def test_whoever_waits_for_a_turn_for_too_long_has_a_timeout(golden: Golden) -> None:
    async def use(client: HttpClient, answering: asyncio.Event) -> None:
        first = asyncio.create_task(client.send(ASKED))
        await asyncio.sleep(0.02)
        second = await client.send(ASKED, limit_s=0.1)
        assert second.ending == "timeout"
        golden(second.detail)
        answering.set()
        assert (await first).ending == "answered"
        assert (await client.send(ASKED)).ending == "answered"

    with_client(use)


@pytest.mark.parametrize("served", [False, True], ids=["while it waits", "when its turn has come"])
def test_a_request_that_is_cancelled_in_the_queue_holds_up_nobody(served: bool) -> None:
    async def use(client: HttpClient, answering: asyncio.Event) -> None:
        first, second, third = (asyncio.create_task(client.send(ASKED)) for _ in range(3))
        await asyncio.sleep(0.02)
        if served:
            answering.set()
            await first
        second.cancel()
        answering.set()
        assert (await asyncio.wait_for(third, 2)).ending == "answered"
        assert (await asyncio.wait_for(first, 2)).ending == "answered"
        with pytest.raises(asyncio.CancelledError):
            await second

    with_client(use)


def test_a_client_that_is_closed_ends_what_is_under_way() -> None:
    async def use(client: HttpClient, answering: asyncio.Event) -> None:
        first = asyncio.create_task(client.send(ASKED))
        await asyncio.sleep(0.02)
        await client.close()
        assert (await asyncio.wait_for(first, 2)).ending == "closed"

    with_client(use)
