from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from agent_http_servers import Plain, ask_raw, ask_web, opened, raw_server, read_request
from golden_words import Golden
from holdfast.errors import AgentUnavailable
from holdfast.model.task import Task

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


def writes(*parts: bytes) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """A server that reads a request, writes these bytes and closes."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.02)

    return handler


def unavailable(url: str, **settings: Any) -> AgentUnavailable:
    async def go() -> None:
        async with opened(url, **settings) as agent:
            await agent.run(Task(("hi",)), Plain())

    with pytest.raises(AgentUnavailable) as caught:
        asyncio.run(go())
    return caught.value


@pytest.mark.parametrize("method", ["POST", "GET", "PUT"])
def test_accepted_and_then_closed_is_the_agents_bad_ending_and_asked_once(method: str, golden: Golden) -> None:
    asked = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await read_request(reader)

    turn = ask_raw(handler, method=method).turns[0]
    assert (turn.text, turn.ending, turn.status, asked) == (None, "closed", None, 1)
    golden(turn.detail)


@pytest.mark.parametrize(
    "parts",
    [
        (HEAD + b"Content-Length: 100\r\n\r\npartial",),
        (HEAD + b"Content-Length: 100\r\n\r\n", b"partial"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n7\r\npartial\r\n",),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n7\r\npartial\r\n", b"zz\r\nbad"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"7\r\npartial\r\nzz\r\nbad"),
    ],
)
def test_incomplete_body_is_closed_with_partial_text_kept(parts: tuple[bytes, ...], golden: Golden) -> None:
    turn = ask_raw(writes(*parts)).turns[0]
    assert (turn.text, turn.ending, turn.status) == ("partial", "closed", 200)
    golden(turn.detail)


def test_stream_cut_in_the_middle_keeps_its_joined_text() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    turn = ask_raw(writes(head + b"14\r\ndata: Hel\n\ndata: lo\n\r\n")).turns[0]
    assert (turn.text, turn.ending) == ("Hello", "closed")


@pytest.mark.parametrize("junk", [b"SSH-2.0-OpenSSH_9\r\n\r\n", b"HTTP/1.1 banana\r\n\r\n", b"\x00\x01\x02\r\n\r\n"])
def test_broken_framing_is_closed(junk: bytes) -> None:
    turn = ask_raw(writes(junk)).turns[0]
    assert (turn.ending, turn.text) == ("closed", None)


def test_body_ended_by_closing_is_a_whole_answer() -> None:
    turn = ask_raw(writes(HEAD + b"\r\nall ", b"of it")).turns[0]
    assert (turn.text, turn.ending) == ("all of it", "answered")


def test_compressed_body_is_read_and_a_corrupt_one_is_unreadable() -> None:
    packed = gzip.compress(b"hello")

    def reply(body: bytes) -> bytes:
        return HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    assert ask_raw(writes(reply(packed))).turns[0].text == "hello"
    broken = ask_raw(writes(reply(b"not gzip at all"))).turns[0]
    assert (broken.ending, broken.cause) == ("unreadable", "not-text")  # so the preflight does not blame the spec


def test_no_answer_in_time_is_a_timeout() -> None:
    async def handler(request: web.Request) -> web.Response:
        await asyncio.sleep(5)
        return web.Response(text="late")

    turn = ask_web(handler, timeout_ms=150).turns[0]
    assert (turn.text, turn.ending, turn.status) == (None, "timeout", None)
    assert 140 < turn.latency_ms < 1000
    assert "150 ms" in turn.detail


def test_timeout_covers_the_body_and_keeps_what_was_read() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(HEAD + b"Content-Length: 100\r\n\r\nso far")
        await asyncio.sleep(0.5)

    turn = ask_raw(handler, timeout_ms=150).turns[0]
    assert (turn.text, turn.ending, turn.status) == ("so far", "timeout", 200)


def test_large_headers_are_not_broken_framing() -> None:
    turn = ask_raw(writes(HEAD + b"X-Trace: " + b"a" * 20_000 + b"\r\nContent-Length: 2\r\n\r\nok")).turns[0]
    assert turn.text == "ok"


def test_refused_is_unavailable_with_a_hint_and_without_the_query() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://user:pass@127.0.0.1:{held.getsockname()[1]}/ask?key=secret"
        error = unavailable(url)
    assert "connection refused" in str(error)
    assert "start the agent" in error.hint
    assert "secret" not in str(error)
    assert "pass" not in str(error)
    assert not error.config


def test_unknown_host_is_unavailable() -> None:
    error = unavailable("http://no-such-host.invalid/ask")
    assert "unknown host no-such-host.invalid" in str(error)


def test_connect_timeout_is_unavailable_not_the_agents_timeout(golden: Golden) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        try:
            error = unavailable(f"http://127.0.0.1:{full.getsockname()[1]}/", timeout_ms=200)
        finally:
            for filler in fillers:
                filler.close()
    golden(str(error))


def test_a_name_with_an_address_that_leads_nowhere_is_reached_by_its_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async def go(full: socket.socket) -> str | None:
        port = full.getsockname()[1]
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        found = [(*kind, (host, port)) for host in ("127.0.0.2", "127.0.0.1")]

        async def resolved(_: object, name: str, *__: object, **___: object) -> object:
            return [one for one in found if name in ("two-addresses.test", one[4][0])]  # uvloop asks for numbers too

        monkeypatch.setattr(type(asyncio.get_running_loop()), "getaddrinfo", resolved)

        async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError):
                await writes(HEAD + b"Content-Length: 2\r\n\r\nok")(reader, writer)

        url = f"http://two-addresses.test:{port}/"
        server = await asyncio.start_server(handler, sock=socket.create_server(("127.0.0.1", port)))
        async with server, opened(url, timeout_ms=3000) as agent:
            return (await agent.run(Task(("hi",)), Plain())).turns[0].text

    with socket.socket() as full, contextlib.ExitStack() as fillers:
        full.bind(("127.0.0.2", 0))
        full.listen(0)
        for _ in range(4):
            filler = fillers.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        assert asyncio.run(go(full)) == "ok"


def test_a_server_that_speaks_no_tls_is_unavailable() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(HEAD + b"\r\nplain")
        await writer.drain()

    async def go() -> None:
        async with raw_server(handler) as url, opened(url.replace("http:", "https:")) as agent:
            await agent.run(Task(("hi",)), Plain())

    with pytest.raises(AgentUnavailable, match="TLS") as caught:
        asyncio.run(go())
    assert "http://" in caught.value.hint


def test_a_cancelled_trial_is_cancelled_not_a_result() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def go() -> None:
        async with raw_server(handler) as url, opened(url) as agent:
            task = asyncio.create_task(agent.run(Task(("hi",)), Plain()))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(go())
