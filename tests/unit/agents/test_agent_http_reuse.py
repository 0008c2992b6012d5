"""A keep-alive connection that the server had closed while idle is nobody's fault; a crash on one is the agent's."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from agent_http_servers import Plain, opened

from holdfast.model.observation import Answer
from holdfast.model.spec import Task

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


def ask_twice(url: str, between: Callable[[], None] = lambda: None, method: str = "POST") -> Answer:
    """The second of two answers over one pool; `between` holds up the loop, so that it cannot see a close."""

    async def go() -> Answer:
        async with opened(url, method=method) as agent:
            first = await agent.run(Task(("hi",)), Plain())
            assert first.turns[0].text == "ok"
            between()
            return await agent.run(Task(("hi",)), Plain())

    return asyncio.run(go())


@pytest.mark.parametrize("abort", [False, True], ids=["closed", "reset"])
def test_a_connection_closed_while_idle_is_retried_once_on_a_new_one(abort: bool) -> None:
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
    assert "asked again on a new one" in answer.notes[0]


@pytest.mark.parametrize("delay_s", [0.0, 0.1])
def test_a_reused_connection_closed_after_taking_the_request_is_the_agents_doing(delay_s: float) -> None:
    requests = 0

    def talk(connection: socket.socket, n: int) -> None:
        nonlocal requests
        while receive(connection):
            requests += 1
            if requests == 2:
                time.sleep(delay_s)
                return
            connection.sendall(OK)

    with threaded_server(talk) as url:
        answer = ask_twice(url)
    assert (answer.turns[0].ending, answer.notes, requests) == ("closed", (), 2)


def test_connections_are_reused() -> None:
    connections = 0

    def talk(connection: socket.socket, n: int) -> None:
        nonlocal connections
        connections += 1
        while receive(connection):
            connection.sendall(OK)

    with threaded_server(talk) as url:
        assert ask_twice(url).turns[0].text == "ok"
    assert connections == 1
