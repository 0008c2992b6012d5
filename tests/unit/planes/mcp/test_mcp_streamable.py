"""A client over HTTP that drops its call meets no fault; one that waits does."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable

import pytest
from mcp_talk import call, line

from golden_words import Golden
from holdfast.http1.client import Upstreams
from holdfast.http1.server import Exchange, serve
from holdfast.model.scenario import Injection
from holdfast.planes import sse
from holdfast.planes.mcp.config import Target
from holdfast.planes.mcp.plane import McpPlane
from planes_kit import FakeContext

OK = line(id=1, result={"content": [{"type": "text", "text": "hello"}]})
LIST = line(id=1, method="tools/list")
TOOLS = line(id=1, result={"tools": [{"name": "search", "description": "Finds.", "inputSchema": {"type": "object"}}]})
Client = Callable[[int, bytes], Awaitable[None]]


def after(fault: Injection, body: bytes, client: Client, *, leave: bool = False) -> FakeContext:
    """The trial after what a client does with one request; `leave` ends it as soon as a fault has fired."""
    context = FakeContext([fault])

    async def server(exchange: Exchange) -> None:
        asked = await exchange.read_body()
        await exchange.respond(200, (("content-type", "application/json"),), TOOLS if b"tools/list" in asked else OK)

    async def main() -> None:
        upstreams, real = Upstreams(), await serve(server)
        plane = McpPlane({"s": Target(f"http://127.0.0.1:{real.port}/mcp", {})}, upstreams)
        ended: list[None] = []

        async def handler(exchange: Exchange) -> None:
            await plane.serve_http(exchange, "s", context)
            ended.append(None)

        ours = await serve(handler)
        try:
            await client(ours.port, b"POST /s HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
            while not (context.ledger if leave else ended):
                await asyncio.sleep(0)
            plane.end_trial(context)
        finally:
            for one in (ours, real, upstreams):
                await one.close()

    asyncio.run(asyncio.wait_for(main(), 10))
    return context


async def drops(port: int, request: bytes) -> None:
    """Sends and closes in one step of the loop: both are there before either is read."""
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(request)
    client.close()


async def waits(port: int, request: bytes) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    await asyncio.sleep(0.3)
    writer.close()


@pytest.mark.parametrize(
    "fault",
    [
        Injection("tool", "*", "error"),
        Injection("tool", "*", "phantom_success"),
        Injection("tool", "*", "lost_reply"),
        Injection("tool", "*", "slow", {"delay_ms": 2000}),
        Injection("mcp", "*", "session_lost"),
        Injection("mcp", "*", "hang"),
        Injection("mcp", "*", "crash_mid_call"),
    ],
    ids=lambda fault: fault.mode,
)
def test_a_client_that_drops_its_call_meets_nothing(fault: Injection) -> None:
    context = after(fault, call(), drops)
    assert [met.effect for met in context.ledger] == ["no_effect"]
    assert [(event.phase, event.fault) for event in context.trace] == [("unfinished", "")]
    assert context.troubles == []


def test_a_client_that_drops_its_request_for_the_tools_meets_no_poison() -> None:
    context = after(Injection("mcp", "*", "tool_poisoning"), LIST, drops)
    assert [met.effect for met in context.ledger] in ([], ["no_effect"])  # the list may not even have been asked for
    context = after(Injection("mcp", "*", "tool_poisoning"), LIST, waits)
    assert [met.effect for met in context.ledger] == ["met"]


async def leaves_unread(port: int, request: bytes) -> None:
    """Takes the beginning of the reply and no more, then resets the connection."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, ("127.0.0.1", port))
    await loop.sock_sendall(client, request)
    await loop.sock_recv(client, 16)
    client.close()


async def reads_all(port: int, request: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1))
    while await reader.read(1 << 20):
        pass
    writer.close()


@pytest.mark.slow
@pytest.mark.parametrize(("client", "effect"), [(leaves_unread, "no_effect"), (reads_all, "met")])
def test_a_client_that_leaves_in_the_middle_of_the_reply_has_not_met_it(client: Client, effect: str) -> None:
    context = after(Injection("tool", "*", "oversized", {"bytes": 20_000_000}), call(), client)
    assert [met.effect for met in context.ledger] == [effect]
    assert context.troubles == []


@pytest.mark.parametrize(
    "fault", [Injection("tool", "*", "slow", {"delay_ms": 5000}), Injection("mcp", "*", "hang")], ids=["slow", "hang"]
)
def test_a_client_that_gives_up_after_a_while_has_met_the_wait(fault: Injection) -> None:
    assert [met.effect for met in after(fault, call(), waits).ledger] == ["met"]


# Servers over HTTP that do not keep to the rules: our error, told to the trial, and never a silent end.


EMPTY = line(id=1, result={"content": []})


def asked(stream: bytes, headers: dict[str, str] | None = None) -> tuple[bytes, FakeContext]:
    """What a client gets for a call, from a server that answers with this stream."""
    context = FakeContext()

    async def server(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.respond(200, (("content-type", "text/event-stream"),), stream)

    async def main() -> bytes:
        upstreams, real = Upstreams(), await serve(server)
        plane = McpPlane({"s": Target(f"http://127.0.0.1:{real.port}/mcp", headers or {})}, upstreams)
        ours = await serve(lambda exchange: plane.serve_http(exchange, "s", context))
        reader, writer = await asyncio.open_connection("127.0.0.1", ours.port)
        body = call()
        writer.write(b"POST /s HTTP/1.1\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        try:
            return await asyncio.wait_for(reader.read(), 5)
        finally:
            writer.close()
            for one in (ours, real, upstreams):
                await one.close()

    return asyncio.run(main()), context


@pytest.mark.parametrize("end", [b"\r\n\n", b"\n\r\n", b"\r\r", b"\n\r"])
def test_an_answer_is_found_with_any_line_ending(end: bytes) -> None:
    received, context = asked(b"\xef\xbb\xbfdata: " + EMPTY + end)
    assert EMPTY in received
    assert (context.troubles, context.trace[0].phase) == ([], "done")


def test_an_event_without_end_is_an_error_of_the_trial(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setattr(sse, "LIMIT", 100)
    received, context = asked(b"data: " + b"x" * 1_000 + b"\n\n")
    assert received.startswith(b"HTTP/1.1 502")
    golden(context.troubles[0])


def test_a_header_that_cannot_be_sent_is_an_error_of_the_trial(golden: Golden) -> None:
    received, context = asked(b"", {"x-key": "a\r\nb"})
    assert received.startswith(b"HTTP/1.1 502")
    golden(context.troubles[0])
