"""What a changed request comes to: refusals that could be read, connections that ended, copies, pauses."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from time import perf_counter
from typing import Any

import pytest
from aiohttp import web

from agent_http_servers import Plain, opened, raw_server, read_request, web_server
from changed_request_kit import PROMPT, ask_changed, change_of, changed_raw, changed_web, task_of
from golden_words import Golden
from holdfast.agents.http.changed_client import PIECES
from holdfast.errors import AgentUnavailable
from holdfast.model.task import RequestChange, Task

TOO_LARGE = (
    b"HTTP/1.1 413 Too Large\r\nContent-Type: text/plain\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large"
)


def fine(text: str = "fine") -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()


def reset(writer: asyncio.StreamWriter) -> None:
    """Ends the connection by RST."""
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@pytest.mark.parametrize("hard", [True, False])
def test_a_413_is_read_though_the_server_leaves_while_the_body_is_sent(hard: bool) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(TOO_LARGE)
        await writer.drain()
        if hard:
            writer.close()  # with most of the body unread, the system resets

    change = RequestChange("payload_size_attack", "x", body="long_string", size=1_000_000)
    turn = changed_raw(handler, change).turns[0]
    assert (turn.ending, turn.status, turn.text) == ("http_error", 413, "too large")


def test_a_4xx_whose_body_breaks_off_is_still_a_refusal() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(TOO_LARGE[:-4])
        await writer.drain()

    turn = changed_raw(handler, RequestChange("payload_size_attack")).turns[0]
    assert (turn.ending, turn.status) == ("http_error", 413)


def test_a_reply_that_breaks_off_after_200_is_a_bad_ending() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(fine()[:-2])
        await writer.drain()

    turn = changed_raw(handler, RequestChange("payload_size_attack")).turns[0]
    assert (turn.ending, turn.status) == ("closed", 200)


@pytest.mark.parametrize("malformed", [True, False])
@pytest.mark.parametrize("hard", [True, False])
def test_a_server_that_leaves_without_a_word_is_noted_where_the_request_was_malformed(
    malformed: bool, hard: bool
) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            await read_request(reader)
            if hard:
                reset(writer)

    answer = changed_raw(handler, RequestChange("protocol_level_attack", malformed=malformed))
    assert (answer.turns[0].ending, answer.turns[0].status) == ("closed", None)
    assert ["malformed on purpose" in note for note in answer.notes] == [True] * malformed


def test_a_server_that_a_malformed_request_ended_has_crashed() -> None:
    async def go() -> Any:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await read_request(reader)
            server.close()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        return await ask_changed(f"http://127.0.0.1:{port}/", RequestChange("protocol_level_attack", malformed=True))

    turn = asyncio.run(go()).turns[0]
    assert turn.ending == "crashed"
    assert "stopped accepting connections" in turn.detail


def test_an_agent_that_is_not_there_is_no_ending() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for copies in (1, 3):
        with pytest.raises(AgentUnavailable, match="connection refused"):
            asyncio.run(ask_changed(f"http://127.0.0.1:{port}/", RequestChange("x", copies=copies)))


def test_a_silent_agent_times_out() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    for copies in (1, 3):
        turn = changed_raw(handler, RequestChange("x", copies=copies), timeout_ms=200).turns[0]
        assert (turn.ending, turn.status) == ("timeout", None)


def test_the_next_trial_meets_a_connection_of_its_own() -> None:
    served: list[tuple[int, bytes]] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        mine = len(connections)
        connections.append(mine)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                served.append((mine, await read_request(reader)))
                writer.write(fine())
                await writer.drain()

    connections: list[int] = []

    async def go() -> None:
        async with raw_server(handler) as url, opened(url) as agent:
            for task in (Task((PROMPT,)), task_of(change_of("protocol_level_attack", "bytes_behind")), Task((PROMPT,))):
                answer = await agent.run(task, Plain())
                assert answer.turns[0].text == "fine"

    asyncio.run(go())
    assert sorted(connections) == [0, 1]
    assert [served[0][0], served[1][0], served[-1][0]] == [0, 1, 0]
    assert b"Connection: close" in served[1][1]
    assert b"Connection: close" not in served[-1][1]


def test_pauses_cut_the_request_into_pieces_and_are_not_the_agents_time() -> None:
    pieces: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        while sum(map(len, pieces)) < 32:
            pieces.append(await reader.read(1_000))
        writer.write(fine())
        await writer.drain()

    change = RequestChange("timeout_manipulation", slow="body", slow_ms=450)
    start = perf_counter()
    turn = changed_raw(handler, change).turns[0]
    whole_ms = (perf_counter() - start) * 1000
    assert turn.text == "fine"
    assert len(pieces) == PIECES - 2  # 32 bytes in pieces of 4
    assert turn.latency_ms < whole_ms - 7 * 50


def test_all_pauses_together_are_below_the_agents_time() -> None:
    async def handler(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(text="fine")

    change = RequestChange("timeout_manipulation", slow="head", slow_ms=60_000)
    turn = changed_web(handler, change, timeout_ms=1_000).turns[0]
    assert turn.ending == "answered"


def test_a_reply_that_is_read_slowly_arrives_whole() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text="word " * 100_000)

    change = RequestChange("timeout_manipulation", slow="reply", slow_ms=100)
    turn = changed_web(handler, change).turns[0]
    assert turn.text == "word " * 100_000


@pytest.mark.parametrize(
    ("statuses", "status", "ending"),
    [
        ([200, 500, 200, 429], 500, "http_error"),
        ([429, 200, 429, 429], 200, "answered"),
        ([429, 429, 429, 429], 429, "http_error"),
        ([200, 200, 200, 200], 200, "answered"),
    ],
)
def test_of_copies_the_worst_is_seen(statuses: list[int], status: int, ending: str) -> None:
    left = list(statuses)

    async def handler(request: web.Request) -> web.Response:
        return web.Response(text="fine", status=left.pop())

    answer = changed_web(handler, RequestChange("concurrent_request_pattern", copies=4))
    assert (answer.turns[0].status, answer.turns[0].ending) == (status, ending)
    assert left == []
    assert answer.notes[0].startswith("4 concurrent requests: ")


async def test_copies_are_under_way_at_the_same_time(golden: Golden) -> None:
    together = asyncio.Barrier(8)

    async def handler(request: web.Request) -> web.Response:
        await together.wait()
        return web.Response(text="fine")

    async with web_server(handler) as url:
        answer = await ask_changed(url, change_of("concurrent_request_pattern", "eight"), timeout_ms=5_000)
    assert answer.turns[0].ending == "answered"
    golden(answer.notes)


def test_the_answer_is_that_to_the_tasks_own_question() -> None:
    asked: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        asked.append((await request.json())["input"])
        return web.Response(text=asked[-1])

    change = RequestChange("concurrent_request_pattern", copies=3, others="something else")
    assert changed_web(handler, change).turns[0].text == PROMPT
    assert sorted(asked) == sorted([PROMPT, "something else", "something else"])


def test_copies_that_are_left_do_not_count(golden: Golden) -> None:
    async def handler(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(text="fine")

    answer = changed_web(handler, RequestChange("concurrent_request_pattern", copies=4, abandoned=2))
    assert answer.turns[0].ending == "answered"
    golden(answer.notes)


def test_every_turn_of_a_conversation_is_changed_and_cookies_are_kept() -> None:
    seen: list[tuple[str | None, str | None]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append((request.headers.get("X-Mark"), request.cookies.get("s")))
        reply = web.Response(text="fine")
        reply.set_cookie("s", "1")
        return reply

    answer = changed_web(handler, RequestChange("http_header_injection", added=(("X-Mark", "a"),)), "one", "two")
    assert [turn.text for turn in answer.turns] == ["fine", "fine"]
    assert seen == [("a", None), ("a", "1")]
