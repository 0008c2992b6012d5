"""A client that leaves its model call meets no fault; one that waits, or half-closes its connection, does."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from threading import Barrier
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from gateway_agent import run_scripted, run_served

from holdfast.model.scenario import Injection, Schedule
from planes_kit import FakeContext

BODY = b'{"model": "m", "stream": %b, "messages": [{"role": "user", "content": "hello"}]}'
FAULTS = [
    ("rate_limit", {}),
    ("server_error", {}),
    ("overloaded", {}),
    ("quota", {}),
    ("timeout", {"delay_ms": 0}),
    ("timeout", {"delay_ms": 2000}),
    ("truncated_response", {"max_tokens": 1}),
    ("stream_cut", {}),
]
Client = Callable[[int, bytes], Awaitable[bytes]]


def after(folder: Path, fault: Injection, client: Client, *, stream: bool = False) -> tuple[FakeContext, bytes]:
    """The trial after what a client does with one request, and what that got."""
    received = b""

    async def agent(url: str) -> None:
        nonlocal received
        at, body = urlsplit(url), BODY % (b"true" if stream else b"false")
        head = f"POST {at.path}/chat/completions HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        assert at.port is not None
        received = await client(at.port, head + body)

    script = "replies: [{text: one two three four}]"
    context = run_scripted(folder, script, agent, fault, until_traced=True)
    return context, received


def drops(*, reset: bool) -> Client:
    """Sends and closes in one step of the loop: both are there before either is read."""

    async def client(port: int, request: bytes) -> bytes:
        line = socket.create_connection(("127.0.0.1", port))
        line.sendall(request)
        if reset:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        line.close()
        return b""

    return client


async def waits(port: int, request: bytes) -> bytes:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    await asyncio.sleep(0.3)
    writer.close()
    return b""


async def ends_its_direction(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    writer.write_eof()
    received = await reader.read()
    writer.close()
    return received


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize(("mode", "settings"), FAULTS)
def test_a_client_that_leaves_meets_no_fault(
    tmp_path: Path, mode: str, settings: dict[str, int], stream: bool, reset: bool
) -> None:
    context, _ = after(tmp_path, Injection("llm", "*", mode, settings), drops(reset=reset), stream=stream)
    (met,), (event,) = context.ledger, context.trace
    assert met.effect == "no_effect"
    assert (event.error_type, event.fault) == ("client_gone", "")
    assert context.troubles == []


def test_a_client_that_gives_up_waiting_has_met_the_delay(tmp_path: Path) -> None:
    context, _ = after(tmp_path, Injection("llm", "*", "timeout", {"delay_ms": 5000}), waits)
    assert [(met.effect, met.delayed) for met in context.ledger] == [("met", True)]


@pytest.mark.parametrize(
    ("mode", "settings", "expected"),
    [
        ("rate_limit", {}, b"HTTP/1.1 429"),
        ("truncated_response", {"max_tokens": 1}, b'"length"'),
        ("timeout", {"delay_ms": 100}, b""),
    ],
)
def test_a_client_with_a_half_closed_connection_meets_the_fault(
    tmp_path: Path, mode: str, settings: dict[str, int], expected: bytes
) -> None:
    context, received = after(tmp_path, Injection("llm", "*", mode, settings), ends_its_direction)
    assert [met.effect for met in context.ledger] == ["met"]
    assert expected in received
    assert bool(received) is bool(expected)


# Calls overlap if the agent had several under way: not where it only looks so, and also where a script is fast.


NEVER = Injection("llm", "*", "rate_limit", {}, Schedule(on_call=100))
PATH = "/chat/completions"


def sent(url: str, prompt: str, barrier: Barrier | None = None, *, stream: bool = False) -> HTTPConnection:
    """A connection on which a model was asked."""
    place, _, path = url.removeprefix("http://").partition("/")
    connection = HTTPConnection(place, timeout=10)
    connection.connect()
    if barrier is not None:
        barrier.wait()
    body = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": prompt}]}
    connection.request("POST", f"/{path}{PATH}", json.dumps(body))
    return connection


def post(url: str, prompt: str, barrier: Barrier | None = None) -> None:
    with closing(sent(url, prompt, barrier)) as connection:
        connection.getresponse().read()


SCRIPT = "replies: [{text: hello}]"


def test_concurrent_calls_of_a_fast_script_overlap(tmp_path: Path) -> None:
    async def talk(url: str) -> None:
        barrier = Barrier(2)
        await asyncio.gather(*[asyncio.to_thread(post, url, prompt, barrier) for prompt in ("one", "two")])

    trials = (run_scripted(tmp_path, SCRIPT, talk, NEVER) for _ in range(5))
    assert any(context.concurrent for context in trials), "a busy machine may hold one of two threads back"


def test_sequential_calls_do_not_overlap(tmp_path: Path) -> None:
    async def talk(url: str) -> None:
        for prompt in ("one", "two", "three"):
            await asyncio.to_thread(post, url, prompt)

    assert not run_scripted(tmp_path, SCRIPT, talk, NEVER).concurrent


def test_a_stream_is_over_after_its_finish_reason(tmp_path: Path) -> None:
    assert not _linger(tmp_path, b"data: [DONE]\n\n", "stop")


def test_a_stream_without_a_finish_reason_is_not_over(tmp_path: Path) -> None:
    assert _linger(tmp_path, b"", None)


def _linger(folder: Path, end: bytes, finish: str | None) -> bool:
    """Whether a second call overlaps with a first one whose stream stays open."""
    done = asyncio.Event()

    async def lingering(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        chunk = {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": finish}], "model": "m"}
        await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n" + end)
        await done.wait()
        return response

    async def talk(url: str) -> None:
        first = await asyncio.to_thread(sent, url, "one", stream=True)
        reply = await asyncio.to_thread(first.getresponse)
        await asyncio.to_thread(reply.read1, 10)
        second = asyncio.ensure_future(asyncio.to_thread(post, url, "two"))
        await asyncio.sleep(0.1)
        done.set()
        await second
        first.close()

    return run_served(folder, lingering, talk, NEVER).concurrent
