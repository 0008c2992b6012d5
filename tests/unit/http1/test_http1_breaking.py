"""Connections that break, clients that do not read, listeners that end."""

from __future__ import annotations

import asyncio
import socket

import pytest

from golden_words import Golden
from holdfast.http1.server import Exchange, serve
from http1_kit import raw, serving, until

GET = b"GET / HTTP/1.1\r\n\r\n"


async def ok(exchange: Exchange) -> None:
    await exchange.respond(200)


async def test_a_streams_head_leaves_before_its_first_chunk() -> None:
    async def waiting(exchange: Exchange) -> None:
        await exchange.start(200, [("Content-Type", "text/event-stream")])
        await asyncio.Event().wait()

    async with serving(waiting) as listener, raw(listener.port) as client:
        client.send(GET)
        assert b"Transfer-Encoding: chunked" in await client.head()


async def test_cut_delivers_what_was_written_and_no_end() -> None:
    async def cutting(exchange: Exchange) -> None:
        await exchange.start(200)
        await exchange.write(b"half")
        exchange.break_connection()

    async with serving(cutting) as listener, raw(listener.port) as client:
        client.send(GET)
        await client.head()
        assert await client.rest() == b"4\r\nhalf\r\n"


async def test_cut_comes_after_all_written_data_even_for_a_slow_reader() -> None:
    async def cutting(exchange: Exchange) -> None:
        await exchange.start(200, length=20_000_000)
        await exchange.write(b"x" * 9_000_000)
        exchange.break_connection()

    async with serving(cutting) as listener, raw(listener.port) as client:
        client.send(GET)
        await client.head()
        assert len(await client.rest()) == 9_000_000


async def test_cut_does_not_wait_for_a_client_that_never_reads() -> None:
    async def cutting(exchange: Exchange) -> None:
        await exchange.start(200)
        exchange.connection.send(b"x" * 20_000_000)
        exchange.break_connection()

    async with serving(cutting) as listener, raw(listener.port, limit=1000) as client:
        client.send(GET)
        await until(lambda: len(listener.connections) == 1)
        await until(lambda: not listener.connections)


async def test_cut_works_inside_a_declared_length_and_before_any_answer() -> None:
    async def cutting(exchange: Exchange) -> None:
        if exchange.head.target == "/inside":
            await exchange.start(200, length=100)
            await exchange.write(b"x" * 7)
        exchange.break_connection()
        with pytest.raises(ConnectionResetError):
            await exchange.write(b"more")

    async with serving(cutting) as listener:
        async with raw(listener.port) as client:
            client.send(b"GET /inside HTTP/1.1\r\n\r\n")
            assert b"Content-Length: 100" in await client.head()
            assert await client.rest() == b"x" * 7
        async with raw(listener.port) as client:
            client.send(GET)
            assert await client.rest() == b""


async def test_reset_sends_a_real_rst() -> None:
    async def resetting(exchange: Exchange) -> None:
        await exchange.start(200)
        await exchange.write(b"half")
        exchange.break_connection(reset=True)

    async with serving(resetting) as listener, raw(listener.port) as client:
        client.send(GET)
        with pytest.raises(ConnectionResetError):
            await client.rest()


async def test_write_waits_for_a_client_that_does_not_read() -> None:
    written = 0

    async def flood(exchange: Exchange) -> None:
        nonlocal written
        await exchange.start(200)
        while True:
            await exchange.write(b"x" * 10_000)
            written += 10_000

    async with serving(flood) as listener, raw(listener.port, limit=1000) as client:
        client.send(GET)
        await client.head()
        before = -1
        while written != before:
            before = written
            await asyncio.sleep(0.1)
        (connection,) = listener.connections
        assert connection.transport.get_write_buffer_size() < 200_000
        await client.reader.readexactly(2_000_000)
        await until(lambda: written > before)
    assert written < 100_000_000


async def test_a_body_that_nobody_takes_is_not_read_into_memory() -> None:
    seen: list[Exchange] = []

    taken = asyncio.Event()

    async def later(exchange: Exchange) -> None:
        seen.append(exchange)
        await taken.wait()
        total = 0
        async for data in exchange.stream_body():
            total += len(data)
        await exchange.respond(200, body=b"%d" % total)

    async with serving(later) as listener, raw(listener.port) as client:
        client.send(b"POST / HTTP/1.1\r\nContent-Length: 20000000\r\n\r\n" + b"x" * 20_000_000)
        await until(lambda: bool(seen) and seen[0].connection.holds)
        await asyncio.sleep(0.05)
        assert seen[0].inflow.waiting < 1_000_000
        taken.set()
        assert (await client.reply())[2] == b"20000000"


async def test_a_client_that_leaves_is_noticed_and_writing_to_it_raises() -> None:
    ended: list[str] = []

    async def streaming(exchange: Exchange) -> None:
        await exchange.start(200)
        await exchange.write(b"first")
        await until(lambda: exchange.connection.is_gone)
        try:
            await exchange.write(b"more")
        except ConnectionResetError:
            ended.append("reset")
            raise

    async with serving(streaming) as listener:
        reported: list[Exception] = []
        listener.on_error = lambda _, error: reported.append(error)
        async with raw(listener.port) as client:
            client.send(GET)
            await client.head()
        await until(lambda: bool(ended) and not listener.connections)
        assert not reported


async def test_a_client_that_leaves_in_the_middle_of_its_body_fails_the_reading(golden: Golden) -> None:
    ended: list[str] = []

    async def reading(exchange: Exchange) -> None:
        try:
            await exchange.read_body()
        except ConnectionResetError as error:
            ended.append(str(error))
            raise

    async with serving(reading) as listener:
        async with raw(listener.port) as client:
            client.send(b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf")
            await asyncio.sleep(0.02)
        await until(lambda: bool(ended))
    golden(ended)


async def test_a_request_is_handled_even_if_its_client_does_not_wait() -> None:
    done: list[bytes] = []

    async def reading(exchange: Exchange) -> None:
        await until(lambda: exchange.connection.is_gone)
        done.append(await exchange.read_body())
        await exchange.respond(200)

    async with serving(reading) as listener:
        async with raw(listener.port) as client:
            client.send(b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nfire")
            await client.writer.drain()
        await until(lambda: done == [b"fire"])


async def test_connections_remember_the_epoch_and_older_ones_are_dropped() -> None:
    stopped: list[str] = []

    async def slow(exchange: Exchange) -> None:
        if exchange.head.target == "/quick":
            await exchange.respond(200)
            return
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(exchange.head.target)

    async with serving(slow) as listener, raw(listener.port) as idle, raw(listener.port) as busy:
        idle.send(b"GET /quick HTTP/1.1\r\n\r\n")
        await idle.reply()
        busy.send(b"GET /busy HTTP/1.1\r\n\r\n")
        await until(lambda: sum(not c.requests.is_idle for c in listener.connections) == 1)
        listener.epoch = 5
        async with raw(listener.port) as newer:
            newer.send(b"GET /quick HTTP/1.1\r\n\r\n")
            await newer.reply()
            assert sorted(c.born for c in listener.connections) == [0, 0, 5]
            listener.drop({c for c in listener.connections if c.born < 5})
            assert await idle.rest() == b""
            await until(lambda: stopped == ["/busy"])
            assert [c.born for c in listener.connections] == [5]
            newer.send(b"GET /quick HTTP/1.1\r\n\r\n")
            assert (await newer.reply())[0] == 200
            listener.drop()
            assert await newer.rest() == b""


async def test_a_wait_lasts_no_longer_than_the_client() -> None:
    waited: list[str] = []

    async def waiting(exchange: Exchange) -> None:
        await exchange.wait(0)
        await exchange.wait(1)
        waited.append("in full")
        try:
            await exchange.wait(60_000)
        except ConnectionResetError:
            waited.append("given up")

    async with serving(waiting) as listener:
        async with raw(listener.port) as client:
            client.send(b"GET / HTTP/1.1\r\n\r\n")
            await until(lambda: waited == ["in full"])
        await until(lambda: waited == ["in full", "given up"])


async def test_close_ends_connections_in_every_state() -> None:
    stopped: list[str] = []

    async def slow(exchange: Exchange) -> None:
        if exchange.head.target == "/quick":
            await exchange.respond(200)
            return
        try:
            await exchange.start(200)
            while True:
                await exchange.write(b"x" * 100_000)
        finally:
            stopped.append("slow")

    listener = await serve(slow)
    async with (
        raw(listener.port),
        raw(listener.port) as part,
        raw(listener.port) as idle,
        raw(listener.port) as busy,
    ):
        part.send(b"POST /part HT")
        idle.send(b"GET /quick HTTP/1.1\r\n\r\n")
        busy.send(b"GET /busy HTTP/1.1\r\n\r\n")
        await idle.reply()
        await busy.head()
        await until(lambda: len(listener.connections) == 4)
        await listener.close()
        assert not listener.connections
        assert stopped == ["slow"]
        with pytest.raises(OSError, match=r"Connect|refused"):
            await asyncio.open_connection("127.0.0.1", listener.port)


async def test_a_socket_of_the_owner_is_used() -> None:
    sock = socket.create_server(("127.0.0.1", 0))
    async with serving(ok, sock=sock) as listener, raw(sock.getsockname()[1]) as client:
        assert listener.port == sock.getsockname()[1]
        client.send(GET)
        assert (await client.reply())[0] == 200
