"""The MCP SDK's own client and server over streamable HTTP, the plane between them: what the client meets."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import httpx
import pytest
from mcp import Client, MCPError
from mcp_kit import SHOP, McpPlace, mcp_place, text

from holdfast.model.canary import find_canaries
from holdfast.model.scenario import Injection, Schedule
from holdfast.planes.mcp.config import Target

LIMIT_S = 30


@pytest.fixture(scope="module", params=["stream", "json"])
def shop(request: pytest.FixtureRequest) -> Iterator[str]:
    """The shop's address; it answers by streams, or by plain JSON."""
    command = [*SHOP, "http", request.param]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/mcp"
        server.terminate()


def meet(
    shop: str, injections: Sequence[Injection], talk: Callable[[Client], Awaitable[Any]], mode: str = "legacy"
) -> tuple[Any, McpPlace]:
    """What a client's talk with the shop gave, through a plane with these faults."""

    async def run() -> tuple[Any, McpPlace]:
        async with (
            mcp_place(injections, {"shop": Target(shop)}) as place,
            Client(place.url(), mode=mode, read_timeout_seconds=10) as client,
        ):
            return await talk(client), place

    return asyncio.run(asyncio.wait_for(run(), LIMIT_S))


async def raised(awaitable: Awaitable[Any]) -> tuple[int, str]:
    with pytest.raises(MCPError) as caught:
        await awaitable
    return caught.value.code, caught.value.message


async def price(client: Client) -> Any:
    return await client.call_tool("price", {"item": "lamp"})


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_healthy_session_passes_over_http(shop, mode):
    async def talk(client):
        tools = [one.name for one in (await client.list_tools()).tools]
        found = await client.call_tool("search", {"query": "lamp", "limit": 2})
        failed = await client.call_tool("broken", {})
        terms = (await client.read_resource("shop://terms")).contents[0].text
        return len(tools), (await price(client)).structured_content["price"], text(found), failed.is_error, terms

    got, place = meet(shop, [], talk, mode)
    assert got == (7, 189.3, "lamp 0\nlamp 1", True, "All sales are final. Ask before you buy.")
    assert [(e.tool, e.error_type) for e in place.context.trace] == [
        ("search", ""),
        ("broken", "tool_error"),
        ("price", ""),
    ]
    assert place.context.troubles == []


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_tool_faults_over_http(shop, mode):
    async def talk(client):
        await client.list_tools()
        failed = text(await price(client))
        late = await raised(price(client))
        lie = (await price(client)).structured_content["price"]
        phantom = text(await client.call_tool("book", {"item": "lamp"}))
        attacked = text(await client.call_tool("describe", {"item": "lamp"}))
        return failed, late, lie != 189.3, phantom, find_canaries(attacked)

    storm = [
        Injection("tool", "price", "error", {}, Schedule(on_call=1)),
        Injection("tool", "price", "timeout", {"delay_ms": 100}, Schedule(on_call=2)),
        Injection("tool", "price", "wrong_value", {"kinds": ["digits"]}, Schedule(on_call=3)),
        Injection("tool", "book", "phantom_success"),
        Injection("context", "describe", "indirect_injection", {"payload": "{canary}"}),
    ]
    got, place = meet(shop, storm, talk, mode)
    assert got[:4] == ("503 Service Unavailable", (-32001, "Request timed out"), True, '{"status":"ok"}')
    assert tuple(got[4]) == place.context.ledger[-1].canaries
    assert [(target, mode) for target, mode, *_ in place.met] == [(one.target, one.mode) for one in storm]


def test_a_lost_reply_breaks_the_connection_after_the_work(shop):
    async def talk(client):
        return await raised(client.call_tool("book", {"item": "lamp"}))

    got, place = meet_breaking(shop, [Injection("tool", "book", "lost_reply")], talk)
    assert place.context.ledger[0].would.startswith("booked")
    assert place.context.trace[0].error_type == "lost"
    assert got == "RemoteProtocolError"  # the server closed without an answer


def test_a_crash_resets_the_connection_and_the_session_is_gone(shop):
    async def talk(client):
        await price(client)

    got, place = meet_breaking(shop, [Injection("mcp", "price", "crash_mid_call")], talk)
    assert got == "ReadError"  # reset by peer
    assert place.context.ledger[0].would == "not asked"
    assert place.context.trace[0].error_type == "crash"

    async def run():
        async with mcp_place([Injection("mcp", "price", "crash_mid_call")], {"shop": Target(shop)}) as place:
            return await after_a_crash(place.url())

    assert asyncio.run(asyncio.wait_for(run(), LIMIT_S)) == (404, 404)


async def after_a_crash(url: str) -> tuple[int, int]:
    """The status of a further request and of the end of a session whose server crashed."""
    headers = {"accept": "application/json, text/event-stream"}
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    async with httpx.AsyncClient(headers=headers) as client:
        begun = await client.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about})
        session = {"mcp-session-id": begun.headers["mcp-session-id"]}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "price", "arguments": {}}}
        with pytest.raises(httpx.ReadError):
            await client.post(url, json=call, headers=session)
        ping = await client.post(url, json={"jsonrpc": "2.0", "id": 3, "method": "ping"}, headers=session)
        return ping.status_code, (await client.delete(url, headers=session)).status_code


def meet_breaking(
    shop: str, injections: Sequence[Injection], talk: Callable[[Client], Awaitable[Any]]
) -> tuple[str, McpPlace]:
    """As `meet`, where the SDK's transport itself fails; the name of what it raised."""
    kept: list[McpPlace] = []

    async def run() -> None:
        async with mcp_place(injections, {"shop": Target(shop)}) as place:
            kept.append(place)
            async with Client(place.url(), mode="legacy", read_timeout_seconds=5) as client:
                await talk(client)

    try:
        asyncio.run(asyncio.wait_for(run(), LIMIT_S))
    except BaseException as failed:
        while isinstance(failed, BaseExceptionGroup):
            failed = failed.exceptions[0]
        return type(failed).__name__, kept[0]
    raise AssertionError("the client noticed nothing")


def test_session_lost_is_404_until_a_new_session_begins(shop):
    async def run():
        storm = [Injection("mcp", "price", "session_lost", {}, Schedule(times=1))]
        async with mcp_place(storm, {"shop": Target(shop)}) as place:
            async with Client(place.url(), mode="legacy") as client:
                first = await raised(price(client))
                second = await raised(client.list_tools())
            async with Client(place.url(), mode="legacy") as client:
                return first, second, (await price(client)).is_error

    got = asyncio.run(asyncio.wait_for(run(), LIMIT_S))
    assert got == ((-32001, "Session not found"), (-32001, "Session not found"), False)


def test_hang_and_malformed_rpc_over_http(shop):
    async def talk(client):
        hung = await raised(client.call_tool("price", {"item": "lamp"}, read_timeout_seconds=0.3))
        garbled = await raised(client.call_tool("describe", {"item": "lamp"}))
        return hung[0], garbled[0], text(await client.call_tool("book", {"item": "lamp"}))[:6]

    storm = [Injection("mcp", "price", "hang"), Injection("mcp", "describe", "malformed_rpc")]
    got, place = meet(shop, storm, talk)
    assert got == (-32001, -32700, "booked")
    assert [e.error_type for e in place.context.trace] == ["silence", "garbage", ""]


def test_tools_vanish_and_are_poisoned_over_http(shop):
    heard = []

    async def on_message(message):
        heard.append(type(message).__name__)

    async def run():
        storm = [
            Injection("mcp", "price", "tools_changed", {}, Schedule(after_calls=1)),
            Injection("mcp", "search", "tool_poisoning"),
        ]
        async with (
            mcp_place(storm, {"shop": Target(shop)}) as place,
            Client(place.url(), mode="legacy", message_handler=on_message) as client,
        ):
            before = {one.name: one for one in (await client.list_tools()).tools}
            gone = await raised(price(client))
            after = {one.name for one in (await client.list_tools()).tools}
            return bool(find_canaries(before["search"].description)), gone, set(before) - after

    got = asyncio.run(asyncio.wait_for(run(), LIMIT_S))
    assert got == (True, (-32602, "Unknown tool: price"), {"price"})
    assert heard == ["ToolListChangedNotification"]


def test_a_server_that_is_not_there_is_our_error_not_the_agents():
    async def run():
        async with mcp_place([], {"shop": Target("http://127.0.0.1:1/mcp")}) as place, httpx.AsyncClient() as client:
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "price"}}
            reply = await client.post(place.url(), json=call)
            unknown = await client.post(place.url("other"), json=call)
            odd = await client.put(place.url(), json=call)
            return reply.status_code, unknown.status_code, odd.status_code, place.context.troubles

    *statuses, troubles = asyncio.run(run())
    assert statuses == [502, 404, 405]
    assert len(troubles) == 1
    assert troubles[0].startswith("MCP server shop ")
    assert "127.0.0.1:1" in troubles[0]


def test_the_servers_headers_are_added_on_our_side():
    from holdfast.http1.server import serve

    seen = []

    async def answer(exchange):
        seen.append((exchange.head.get("authorization"), exchange.head.get("mcp-protocol-version")))
        await exchange.read_body()
        await exchange.respond(202)

    async def run():
        listener = await serve(answer)
        target = Target(f"http://127.0.0.1:{listener.port}/mcp", {"Authorization": "Bearer theirs"})
        async with mcp_place([], {"shop": target}) as place, httpx.AsyncClient() as client:
            headers = {"authorization": "Bearer agents", "mcp-protocol-version": "2025-11-25"}
            note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            reply = await client.post(place.url(), json=note, headers=headers)
        await listener.close()
        return reply.status_code

    assert asyncio.run(run()) == 202
    assert seen == [("Bearer theirs", "2025-11-25")]
