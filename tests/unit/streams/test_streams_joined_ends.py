"""Connections joined at the same time, one of which is read slowly: none gets the bytes of another, on either loop."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable

import pytest
import uvloop

from holdfast.streams.connection_end import ConnectionEnd, dial, join

SIZE = 4_000_000


def text(mark: int) -> bytes:
    return b"".join(b"%d:%07d;" % (mark, n) for n in range(SIZE // 10))


async def carried() -> list[bool]:
    """Whether three clients, each slower than the one before, got what their server sent."""
    served = [text(mark) for mark in range(3)]
    joining: set[asyncio.Task[None]] = set()

    async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(served[int(await reader.readexactly(1))])
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(send, "127.0.0.1", 0)

    async def carry(client: ConnectionEnd) -> None:
        await join(client, await dial(server.sockets[0].getsockname()))

    def arrived(client: ConnectionEnd) -> None:
        joining.add(asyncio.ensure_future(carry(client)))

    plane = await asyncio.get_running_loop().create_server(lambda: ConnectionEnd(arrived), "127.0.0.1", 0)

    async def ask(mark: int) -> bool:
        reader, writer = await asyncio.open_connection(*plane.sockets[0].getsockname(), limit=4096)
        writer.write(b"%d" % mark)
        digest = hashlib.sha256()
        while data := await reader.read(100_000):
            digest.update(data)
            await asyncio.sleep(0.0005 * mark)
        writer.close()
        return digest.digest() == hashlib.sha256(served[mark]).digest()

    async with asyncio.timeout(60):
        whole = await asyncio.gather(*map(ask, range(3)))
        await asyncio.wait(joining)
    plane.close()
    server.close()
    return list(whole)


@pytest.mark.slow
@pytest.mark.parametrize("factory", [None, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_slow_reader_gets_its_own_bytes(factory: Callable[[], asyncio.AbstractEventLoop] | None) -> None:
    with asyncio.Runner(loop_factory=factory) as runner:
        assert runner.run(carried()) == [True] * 3
