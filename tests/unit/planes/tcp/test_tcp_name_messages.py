"""The name server's connection: messages that come together, in pieces, or never end."""

import asyncio
import socket
import struct

from holdfast.planes.tcp.names import NamePlane
from planes_kit import FakeContext


def query(number: int, name: str) -> bytes:
    labels = b"".join(bytes((len(part),)) + part.encode() for part in name.split("."))
    message = struct.pack("!HHHHHH", number, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", 1, 1)
    return struct.pack("!H", len(message)) + message


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The number of the answered query, and the last four bytes: an address, if there is one."""
    (size,) = struct.unpack("!H", await reader.readexactly(2))
    message = await reader.readexactly(size)
    return int.from_bytes(message[:2]), message[-4:]


def test_messages_in_one_segment_and_in_pieces_are_answered_in_order() -> None:
    async def scene() -> list[tuple[int, bytes]]:
        sock = socket.create_server(("127.0.0.1", 0))
        plane = await NamePlane({"db": ("db", "127.0.1.2"), "Cache": ("cache", "127.0.1.3")}, FakeContext()).listen(
            sock
        )
        reader, writer = await asyncio.open_connection("127.0.0.1", plane.port)
        first = query(1, "db") + query(2, "cache")
        writer.write(first + query(3, "db")[:1])
        answers = [await read_answer(reader), await read_answer(reader)]
        for byte in query(3, "db")[1:]:
            writer.write(bytes((byte,)))
            await writer.drain()
        answers.append(await read_answer(reader))
        writer.write_eof()
        assert await reader.read() == b"", "it closes when the client has ended"
        writer.close()
        await plane.close()
        return answers

    expected = [(1, bytes((127, 0, 1, 2))), (2, bytes((127, 0, 1, 3))), (3, bytes((127, 0, 1, 2)))]
    assert asyncio.run(asyncio.wait_for(scene(), 20)) == expected


def test_a_client_that_never_ends_is_closed_with_the_plane() -> None:
    async def scene() -> tuple[bytes, int]:
        before = len(asyncio.all_tasks())
        sock = socket.create_server(("127.0.0.1", 0))
        plane = await NamePlane({}, FakeContext()).listen(sock)
        reader, writer = await asyncio.open_connection("127.0.0.1", plane.port)
        writer.write(query(1, "db")[:5])
        await asyncio.sleep(0.05)
        await plane.close()
        try:
            rest = await reader.read()
        except ConnectionResetError:
            rest = b""
        writer.close()
        return rest, len(asyncio.all_tasks()) - before

    assert asyncio.run(asyncio.wait_for(scene(), 20)) == (b"", 0)
