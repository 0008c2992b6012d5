"""Recorded responses of MCP tools, met by the SDK's own client with a real server behind: the server is not asked."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_kit import SHOP, McpPlace, mcp_place, text

from holdfast.model.task import RecordedResponse
from holdfast.planes.mcp.config import Target
from planes_kit import answer, replay, uses

LIMIT_S = 30
Talk = Callable[[Client], Awaitable[Any]]


def over_stdio(
    talk: Talk, *responses: RecordedResponse, live: bool = False, mode: str = "legacy"
) -> tuple[Any, McpPlace]:
    """What a client's talk with the shop gave, in a trial with this recording."""

    async def run() -> tuple[Any, McpPlace]:
        async with (
            mcp_place(task=replay(*responses, live=live)) as place,
            Client(place.stdio(), mode=mode, read_timeout_seconds=15) as client,
        ):
            return await talk(client), place

    return asyncio.run(asyncio.wait_for(run(), LIMIT_S))


async def refused(awaitable: Awaitable[Any]) -> str:
    with pytest.raises(MCPError) as caught:
        await awaitable
    return str(caught.value.message)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_recorded_results_come_in_order_by_server_or_by_name(mode: str) -> None:
    async def talk(client: Client) -> Any:
        await client.list_tools()
        booked = [text(await client.call_tool("book", {"item": "lamp"})) for _ in range(2)]
        price = (await client.call_tool("price", {"item": "lamp"})).structured_content
        found = await client.call_tool("search", {"query": "lamp"})
        return booked, price, found.structured_content, text(found)

    got, place = over_stdio(
        talk,
        answer("book", "booked by name"),
        answer("shop/book", "booked at the shop"),
        answer("shop/price", {"item": "lamp", "price": 1.5, "currency": "EUR"}),
        answer("search", ["a", "b"]),
        mode=mode,
    )
    booked, price, found, _ = got
    assert booked == ["booked at the shop", "booked by name"]
    assert price == {"item": "lamp", "price": 1.5, "currency": "EUR"}
    assert found == {"result": ["a", "b"]}
    assert uses(place.context.recorded) == [
        ("shop/book", 1, 200), ("book", 1, 200), ("shop/price", 1, 200), ("search", 1, 200),
    ]  # fmt: skip
    assert [(e.tool, e.error_type, e.unsent) for e in place.context.trace] == [
        ("book", "", False), ("book", "", False), ("price", "", False), ("search", "", False),
    ]  # fmt: skip
    assert place.context.troubles == []


def test_the_server_is_asked_only_where_the_replay_is_live() -> None:
    async def talk(client: Client) -> Any:
        return [text(await client.call_tool("book", {"item": "lamp"})) for _ in range(2)]

    got, place = over_stdio(talk, answer("shop/book", "recorded"), live=True)
    assert got == ["recorded", "booked 1"]  # the server has booked once
    assert [(use.is_known, use.passed) for use in place.context.recorded] == [(True, False), (False, True)]


def test_unknown_and_used_up_tools_get_the_servers_error_and_the_session_goes_on() -> None:
    async def talk(client: Client) -> Any:
        first = text(await client.call_tool("describe", {"item": "lamp"}))
        errors = [await refused(client.call_tool(name, {"item": "lamp"})) for name in ("describe", "book")]
        return first, errors, text(await client.call_tool("search", {"query": "x"}))

    got, place = over_stdio(talk, answer("describe", "a lamp"), answer("shop/search", ["late"]))
    assert got[0] == "a lamp"
    assert [text.partition(":")[0] for text in got[1]] == ["describe", "book"]
    assert "late" in got[2]
    assert [(use.tool, use.is_known, use.call) for use in place.context.recorded] == [
        ("describe", True, "describe(item=lamp)"),
        ("describe", False, "describe(item=lamp)"),
        ("shop/book", False, "book(item=lamp)"),
        ("shop/search", True, "search(query=x)"),
    ]
    assert [event.unsent for event in place.context.trace] == [False, True, True, False]


def test_status_0_is_the_servers_error_and_an_http_status_a_result_that_says_so() -> None:
    async def talk(client: Client) -> Any:
        lost = await refused(client.call_tool("describe", {"item": "lamp"}))
        failed = [await client.call_tool("describe", {"item": "lamp"}) for _ in range(2)]
        return lost, [(one.is_error, text(one)) for one in failed]

    got, _ = over_stdio(
        talk,
        answer("describe", None, 0),
        answer("describe", {"error": "slow down"}, 429),
        answer("describe", "it broke", 500),
    )
    assert got == (
        "describe: connection error",
        [
            (True, '429 Too Many Requests: {"error":"slow down"}'),
            (True, "500 Internal Server Error: it broke"),
        ],
    )


def test_a_whole_result_is_given_as_it_is_and_text_that_is_json_fits_the_schema() -> None:
    whole = {"content": [{"type": "text", "text": "all of it"}], "isError": True}

    async def talk(client: Client) -> Any:
        await client.list_tools()
        said = await client.call_tool("describe", {"item": "lamp"})
        stock = await client.call_tool("stock", {"item": "lamp"})
        return (text(said), said.is_error), stock.structured_content

    got, place = over_stdio(
        talk, answer("describe", whole), answer("stock", '{"item": "lamp", "places": ["shelf"], "count": 1}')
    )
    assert got == (("all of it", True), {"item": "lamp", "places": ["shelf"], "count": 1})
    assert place.context.notes == []


def test_a_response_that_the_tools_schema_refuses_is_noted() -> None:
    async def talk(client: Client) -> Any:
        await client.list_tools()
        with pytest.raises(RuntimeError, match="stock"):
            await client.call_tool("stock", {"item": "lamp"})

    _, place = over_stdio(talk, answer("stock", {"item": "lamp", "old": True}))
    assert [" shop/stock: " in note for note in place.context.notes] == [True]


def test_latency_is_waited_and_calls_at_once_wait_together() -> None:
    async def talk(client: Client) -> Any:
        begun = time.monotonic()
        calls = [client.call_tool("describe", {"item": str(n)}) for n in range(2)]
        ended = [text(await call) for call in asyncio.as_completed(calls)]
        return ended, time.monotonic() - begun

    (ended, took), _ = over_stdio(talk, *[answer("describe", f"d{n}", latency_ms=ms) for n, ms in enumerate((1500, 1))])
    assert ended == ["d1", "d0"]
    assert took >= 1.5


@pytest.mark.parametrize("form", ["stream", "json"])
def test_a_server_over_http_is_not_asked_either(form: str) -> None:
    async def run(shop: str) -> tuple[Any, McpPlace]:
        async with (
            mcp_place(servers={"shop": Target(shop)}, task=replay(answer("shop/book", "recorded"))) as place,
            Client(place.url(), mode="legacy", read_timeout_seconds=10) as client,
        ):
            first = text(await client.call_tool("book", {"item": "lamp"}))
            return (first, await refused(client.call_tool("book", {"item": "lamp"}))), place

    with subprocess.Popen(
        [*SHOP, "http", form], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/mcp"
        try:
            got, place = asyncio.run(asyncio.wait_for(run(url), LIMIT_S))
        finally:
            server.terminate()
    assert (got[0], got[1].partition(":")[0]) == ("recorded", "book")
    assert [use.is_known for use in place.context.recorded] == [True, False]
