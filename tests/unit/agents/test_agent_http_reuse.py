"""A kept connection that ends before any byte of a reply is nobody's doing: asked once more on a new one."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agent_http_servers import Plain, opened, raw_server, read_request
from golden_words import Golden
from holdfast.agents.http.client import HttpClient
from holdfast.agents.http.request import HttpRequest, read_url
from holdfast.model.observation import Answer
from holdfast.model.task import Task

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ABORT = struct.pack("ii", 1, 0)

Talk = Callable[[socket.socket, int], None]


def receive(connection: socket.socket) -> bool:
    """Reads one request, which fits a packet here; false at the end."""
    data = b""
    while not data.endswith(b'"hi"}'):
        piece = connection.recv(65536)
        if not piece:
            return False
        data += piece
    return True


@contextmanager
def threaded_server(talk: Talk) -> Iterator[str]:
    """A server in a thread of its own: it acts while the client's loop is held up."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for n in range(1, 10):
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                talk(connection, n)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/ask"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(2)


def ask_twice(url: str, between: Callable[[], None] = lambda: None, **settings: Any) -> Answer:
    """The second of two answers over one pool; `between` holds up the loop, so that it cannot see a close."""

    async def go() -> Answer:
        async with opened(url, **settings) as agent:
            first = await agent.run(Task(("hi",)), Plain())
            assert first.turns[0].text == "ok"
            between()
            return await agent.run(Task(("hi",)), Plain())

    return asyncio.run(go())


@pytest.mark.parametrize("abort", [False, True], ids=["closed", "reset"])
def test_a_connection_closed_while_idle_is_retried_once_on_a_new_one(abort: bool, golden: Golden) -> None:
    closed = threading.Event()

    def talk(connection: socket.socket, n: int) -> None:
        receive(connection)
        connection.sendall(OK)
        if n > 1:
            receive(connection)
            return
        time.sleep(0.05)
        if abort:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
        connection.close()
        closed.set()

    def hold_up() -> None:
        assert closed.wait(2)
        time.sleep(0.02)

    with threaded_server(talk) as url:
        answer = ask_twice(url, hold_up)
    assert (answer.turns[0].text, answer.turns[0].ending) == ("ok", "answered")
    golden(answer.notes[0])


class Dropping:
    """A server that ends the connection at the requests named, by number, after so many bytes of a reply."""

    def __init__(self, *dropped: int, sent: bytes = b"", delay_s: float = 0.0) -> None:
        self._dropped, self._sent, self._delay_s = dropped, sent, delay_s
        self.requests = self.connections = 0

    def __call__(self, connection: socket.socket, n: int) -> None:
        self.connections = n
        while receive(connection):
            self.requests += 1
            if self.requests in self._dropped:
                time.sleep(self._delay_s)
                connection.sendall(self._sent)
                return
            connection.sendall(OK)


@pytest.mark.parametrize("delay_s", [0.0, 0.7])
def test_a_kept_connection_that_ends_without_a_byte_is_asked_again_whenever_it_ends(
    delay_s: float, golden: Golden
) -> None:
    server = Dropping(2, delay_s=delay_s)
    with threaded_server(server) as url:
        answer = ask_twice(url)
    assert (answer.turns[0].text, server.requests, server.connections) == ("ok", 3, 2)
    golden(answer.notes)


def test_if_the_new_connection_ends_so_too_the_agent_ended_badly(golden: Golden) -> None:
    server = Dropping(2, 3)
    with threaded_server(server) as url:
        answer = ask_twice(url)
    assert (answer.turns[0].ending, server.requests) == ("closed", 3)
    golden(answer.notes[0])


def test_a_kept_connection_that_ends_after_a_byte_is_the_agents_doing() -> None:
    server = Dropping(2, sent=b"H")
    with threaded_server(server) as url:
        answer = ask_twice(url)
    assert (answer.turns[0].ending, answer.notes, server.requests) == ("closed", (), 2)


def test_keep_alive_false_opens_a_new_connection_each_time() -> None:
    server = Dropping(2)
    with threaded_server(server) as url:
        answer = ask_twice(url, keep_alive=False)
    assert (answer.turns[0].ending, answer.notes, server.connections) == ("closed", (), 2)


@pytest.mark.processes
@pytest.mark.parametrize(("keep_alive", "connections"), [(None, 2), (False, 2), (True, 1)])
def test_an_agent_with_a_reset_is_asked_again_each_time_unless_the_spec_says_otherwise(
    keep_alive: bool | None, connections: int
) -> None:
    server = Dropping()
    with threaded_server(server) as url:
        ask_twice(url, reset_function="gc:collect", keep_alive=keep_alive)
    assert server.connections == connections


class Watched(Plain):
    """A trial whose planes see what the agent does with a request."""

    def __init__(self, seen: list[int]) -> None:
        super().__init__()
        self._seen = seen

    def count_activity(self) -> int:
        return len(self._seen)


def test_a_request_that_the_agent_has_acted_on_is_not_made_again() -> None:
    seen: list[int] = []

    def talk(connection: socket.socket, n: int) -> None:
        receive(connection)
        connection.sendall(OK)
        if receive(connection):
            seen.append(n)  # it calls its model, which fails, and gives up without a word

    async def go(url: str) -> Answer:
        async with opened(url) as agent:
            await agent.run(Task(("hi",)), Watched(seen))
            return await agent.run(Task(("hi",)), Watched(seen))

    with threaded_server(talk) as url:
        answer = asyncio.run(go(url))
    assert answer.turns[0].ending == "closed"
    assert answer.notes == ()
    assert seen == [1], "asked once"


# No more requests at once than the limit; who waits for a turn has it counted as time, and loses none for others.


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
