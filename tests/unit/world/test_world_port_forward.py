"""A port forward: what is carried, what is closed, and that nothing is left."""

import asyncio
import contextlib
import socket
from types import SimpleNamespace

import pytest

from holdfast.errors import HarnessError
from holdfast.world.ingress import PortForward


def within(port, refused=None):
    """A sandbox in which a program listens on that port of this machine."""

    async def connect(asked):
        if refused is not None:
            raise refused
        sock = socket.socket()
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
        return sock

    return SimpleNamespace(connect=connect)


@contextlib.asynccontextmanager
async def led(answer, refused=None):
    """A way to a server that treats each connection so."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    forward = await PortForward(within(server.sockets[0].getsockname()[1], refused), 3000).listen()
    try:
        yield forward
    finally:
        await forward.close()
        server.close()


async def echo(reader, writer):
    """Answers when the other side has said all."""
    said = await reader.read()
    writer.write(b"heard " + said)
    writer.close()


def test_both_directions_end_by_themselves():
    async def run():
        async with led(echo) as forward:
            reader, writer = await asyncio.open_connection("127.0.0.1", forward.port)
            writer.write(b"x" * 300_000)
            writer.write_eof()
            heard = await asyncio.wait_for(reader.read(), 20)
            writer.close()
            return len(heard)

    assert asyncio.run(run()) == 300_006


@pytest.mark.parametrize("refused", [ConnectionRefusedError(), HarnessError("gone"), TimeoutError()])
def test_where_nobody_listens_the_connection_is_closed(refused):
    async def run():
        async with led(echo, refused) as forward:
            reader, writer = await asyncio.open_connection("127.0.0.1", forward.port)
            assert await asyncio.wait_for(reader.read(), 20) == b""
            writer.close()
            return await forward.is_accepting(1) if not isinstance(refused, HarnessError) else False

    assert asyncio.run(run()) is False


def test_who_does_not_read_fills_no_memory():
    """The agent sends without end, and nobody takes it: it is held up."""
    sent = 0

    async def flood(reader, writer):
        nonlocal sent
        with contextlib.suppress(OSError):
            while True:
                writer.write(b"x" * 65_536)
                sent += 65_536
                await writer.drain()

    async def run():
        async with led(flood) as forward:
            with socket.create_connection(("127.0.0.1", forward.port)):
                before = -1
                while before != sent:
                    before = sent
                    await asyncio.sleep(0.3)

    asyncio.run(run())
    assert 0 < sent < 64_000_000


def test_more_than_it_carries_are_closed(monkeypatch):
    monkeypatch.setattr(PortForward, "limit", 2)

    async def hold(reader, writer):
        writer.write(b"in")
        await reader.read()
        writer.close()

    async def run():
        async with led(hold) as forward:
            held = [await asyncio.open_connection("127.0.0.1", forward.port) for _ in range(2)]
            assert [await reader.read(2) for reader, _ in held] == [b"in", b"in"]
            reader, writer = await asyncio.open_connection("127.0.0.1", forward.port)
            with contextlib.suppress(ConnectionResetError):
                assert await asyncio.wait_for(reader.read(), 20) == b""
            for _, one in (*held, (reader, writer)):
                one.close()

    asyncio.run(run())


def test_closing_ends_what_is_carried():
    async def hold(reader, writer):
        await reader.read()
        writer.close()

    async def run():
        async with led(hold) as forward:
            reader, writer = await asyncio.open_connection("127.0.0.1", forward.port)
            await asyncio.sleep(0.1)
            await forward.close()
            with contextlib.suppress(ConnectionResetError):
                assert await asyncio.wait_for(reader.read(), 20) == b""
            writer.close()
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", forward.port)
            await asyncio.sleep(0.05)
            return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1
