"""Whether a client is there: one that only ends its own direction is, one that has closed is not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from golden_words import Golden
from holdfast.http1.server import Exchange
from http1_kit import contexts, raw, serving, until

GET = b"GET / HTTP/1.1\r\n\r\n"


async def hello(exchange: Exchange) -> None:
    await exchange.wait(30)
    await exchange.respond(200, body=b"hello")


async def test_a_half_closed_client_gets_its_complete_reply() -> None:
    async with serving(hello) as listener, raw(listener.port) as client:
        client.send(GET + GET)
        client.writer.write_eof()
        assert (await client.rest()).count(b"hello") == 2
        await until(lambda: not listener.connections)


async def test_so_does_one_on_a_socket_file(tmp_path: Path) -> None:
    at = str(tmp_path / "s")
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(at)
    async with serving(hello, sock=sock):
        reader, writer = await asyncio.open_unix_connection(at)
        writer.write(GET)
        writer.write_eof()
        assert (await reader.read()).endswith(b"hello")
        writer.close()


async def test_one_that_ends_in_the_middle_of_its_request_or_between_two_is_gone() -> None:
    async with serving(hello) as listener:
        for said in (b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf", b"GET / HT", b""):
            async with raw(listener.port) as client:
                client.send(said)
                client.writer.write_eof()
                assert await client.rest() == b""


@pytest.mark.parametrize("way", ["closed", "ended, then closed", "shut in both directions", "ended, then shut"])
@pytest.mark.parametrize("kind", ["plain", "an upgrade", "socket file"])
async def test_one_that_has_closed_is_known_to_have_left(tmp_path: Path, kind: str, way: str) -> None:
    left: list[float] = []

    async def waiting(exchange: Exchange) -> None:
        began = asyncio.get_running_loop().time()
        with pytest.raises(ConnectionResetError):
            await exchange.wait(5_000)
        left.append(asyncio.get_running_loop().time() - began)
        assert exchange.connection.is_gone

    sock = None
    if kind == "socket file":
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(str(tmp_path / "s"))
    async with serving(waiting, sock=sock) as listener:
        client = socket.socket(socket.AF_UNIX if sock else socket.AF_INET)
        client.connect(str(tmp_path / "s") if sock else ("127.0.0.1", listener.port))
        upgrade = b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
        client.sendall(upgrade if kind == "an upgrade" else GET)
        if way.startswith("ended"):
            client.shutdown(socket.SHUT_WR)
            await asyncio.sleep(0.1)
        if way.endswith("closed"):
            client.close()
        else:
            client.shutdown(socket.SHUT_RDWR)  # its descriptor stays open
        await until(lambda: bool(left) and not listener.connections)
        client.close()
    assert left[0] < 4  # long before the wait was over


@pytest.mark.parametrize("leave", [socket.socket.close, lambda client: client.shutdown(socket.SHUT_RDWR)])
async def test_what_is_sent_to_one_that_has_left_and_not_been_read_yet_is_refused(
    leave: Callable[[socket.socket], None],
    golden: Golden,
) -> None:
    refused: list[str] = []

    async def checking(exchange: Exchange) -> None:
        try:
            exchange.ensure_connected()
        except ConnectionResetError as gone:
            refused.append(str(gone))
        assert exchange.connection.is_gone

    async with serving(checking) as listener:
        with socket.create_connection(("127.0.0.1", listener.port)) as client:
            client.sendall(GET)
            leave(client)
            await until(lambda: bool(refused))
    golden(refused)


async def test_the_end_of_tls_is_the_end_of_the_client() -> None:
    gone: list[bool] = []

    async def waiting(exchange: Exchange) -> None:
        with pytest.raises(ConnectionResetError):
            await exchange.wait(5_000)
        gone.append(exchange.connection.is_gone)

    server, client = contexts()
    async with serving(waiting, tls=server) as listener:
        async with raw(listener.port, ssl=client, server_hostname="localhost") as peer:
            peer.send(GET)
            await until(lambda: len(listener.connections) == 1)
            await asyncio.sleep(0.05)
        await until(lambda: bool(gone))
    assert gone == [True]
