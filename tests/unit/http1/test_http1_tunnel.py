"""CONNECT, TLS, and what clients do with them."""

from __future__ import annotations

import asyncio
import socket
import ssl

import pytest

from holdfast.http1.client import UpstreamFailed
from holdfast.http1.relay import join
from holdfast.http1.server import ClientConnection, Exchange, Serve, Tunnel, serve_plain, serve_tls
from holdfast.streams.socket_stream import UPGRADE, SocketStream
from http1_kit import Raw, contexts, raw, serving, until, upstream

CONNECT = b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n"


async def tunnel(client: Tunnel, host: str, port: int) -> None:
    """Copies both ways between a client and a server."""
    wire = SocketStream()
    wire.hold(UPGRADE)
    try:
        await wire.connect(host, port, 10)
    except UpstreamFailed:
        client.connection.abort()
        raise
    await join(client, wire)


async def inside(exchange: Exchange) -> None:
    is_tls = exchange.connection.transport is not exchange.connection.raw
    text = f"{exchange.head.target} tls={is_tls} born={exchange.connection.born}"
    await exchange.respond(200, body=text.encode())


def by_tls(context: ssl.SSLContext, serve: Serve) -> Serve:
    """Opens the TLS in a CONNECT."""

    async def intercept(exchange: Exchange) -> None:
        await serve_tls(await exchange.take_over(), context, serve)

    return intercept


def _connected(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.sendall(CONNECT)
    sock.recv(1000)
    return sock


async def test_bytes_go_both_ways_after_connect() -> None:
    async def shouting(exchange: Exchange) -> None:
        tunnel = await exchange.take_over()
        while data := await tunnel.read():
            await tunnel.write(data.upper())
            if b"bye" in data:
                tunnel.close()

    async with serving(shouting) as listener, raw(listener.port) as client:
        client.send(CONNECT + b"ahead")
        assert await client.head() == b"HTTP/1.1 200 Connection Established\r\n\r\n"
        assert await client.reader.readexactly(5) == b"AHEAD"
        client.send(b"hello\r\n\r\n")
        assert await client.reader.readexactly(9) == b"HELLO\r\n\r\n"
        client.send(b"bye")
        assert await client.rest() == b"BYE"


async def test_a_tunnel_ends_when_the_client_leaves() -> None:
    ended: list[bytes] = []

    async def reading(exchange: Exchange) -> None:
        tunnel = await exchange.take_over()
        while data := await tunnel.read():
            ended.append(data)
        ended.append(b"")
        with pytest.raises(ConnectionResetError):
            await tunnel.write(b"more")

    async with serving(reading) as listener:
        async with raw(listener.port) as client:
            client.send(CONNECT + b"x")
            await client.head()
            await until(lambda: ended == [b"x"])
        await until(lambda: ended == [b"x", b""])


async def test_a_connect_that_is_refused_can_be_tried_again_on_the_same_connection() -> None:
    async def guarded(exchange: Exchange) -> None:
        if exchange.head.get("Proxy-Authorization") is None:
            await exchange.respond(407, [("Proxy-Authenticate", "Basic")], b"who?")
        else:
            (await exchange.take_over()).close()

    async with serving(guarded) as listener, raw(listener.port) as client:
        client.send(CONNECT)
        assert (await client.reply())[::2] == (407, b"who?")
        client.send(CONNECT.replace(b"\r\n\r\n", b"\r\nProxy-Authorization: Basic x\r\n\r\n"))
        assert b" 200 " in await client.head()


async def test_cut_breaks_tls_without_a_farewell() -> None:
    server, trusting = contexts()

    async def cutting(exchange: Exchange) -> None:
        await exchange.start(200)
        await exchange.write(b"half")
        exchange.break_connection()
        assert exchange.connection.is_gone

    def _read_tls(context: ssl.SSLContext, sock: socket.socket) -> bytes:
        with context.wrap_socket(sock, server_hostname="localhost", suppress_ragged_eofs=False) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            got = b""
            with pytest.raises(ssl.SSLError, match="UNEXPECTED_EOF"):  # noqa: PT012
                while part := client.recv(1000):
                    got += part
        return got

    async with serving(by_tls(server, cutting)) as listener:
        sock = await asyncio.to_thread(_connected, listener.port)
        got = await asyncio.to_thread(_read_tls, trusting, sock)
        assert got.endswith(b"4\r\nhalf\r\n")


@pytest.mark.parametrize("says_farewell", [True, False])
async def test_a_tls_client_may_leave_after_a_close_in_the_middle_of_a_reply(says_farewell: bool) -> None:
    server, trusting = contexts()

    async def closing(exchange: Exchange) -> None:
        await exchange.start(200, (), 1000)
        await exchange.write(b"half")
        exchange.connection.close()

    def _read_and_leave(sock: socket.socket) -> bytes:
        with trusting.wrap_socket(sock, server_hostname="localhost") as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            got = b""
            while part := client.recv(1000):
                got += part
            if says_farewell:
                client.unwrap()
        return got.partition(b"\r\n\r\n")[2]

    async with serving(by_tls(server, closing)) as listener:
        sock = await asyncio.to_thread(_connected, listener.port)
        assert await asyncio.to_thread(_read_and_leave, sock) == b"half"
        await asyncio.sleep(0.05)


async def test_close_ends_a_client_in_the_middle_of_its_handshake() -> None:
    server, _ = contexts()

    async with serving(by_tls(server, inside)) as listener, raw(listener.port) as client:
        client.send(CONNECT + b"\x16")
        await client.head()
        await asyncio.sleep(0.02)


async def test_drop_ends_the_tls_in_a_connection_and_whoever_answers_there() -> None:
    server, trusting = contexts()
    stopped: list[str] = []
    roots: list[ClientConnection] = []

    async def slow(exchange: Exchange) -> None:
        roots.append(exchange.connection.root)
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append("inner")

    async def intercept(exchange: Exchange) -> None:
        inner = await serve_tls(await exchange.take_over(), server, slow)
        assert inner.root is exchange.connection
        try:
            await asyncio.sleep(60)
        finally:
            stopped.append("outer")

    def ask(sock: socket.socket) -> bytes:
        with trusting.wrap_socket(sock, server_hostname="localhost") as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            try:
                return client.recv(1000)
            except OSError:
                return b""

    async with serving(intercept) as listener:
        asking = asyncio.create_task(asyncio.to_thread(lambda: ask(_connected(listener.port))))
        await until(lambda: len(roots) == 1)
        listener.drop(set())
        assert len(listener.connections) == 1
        listener.drop(set(roots))
        await until(lambda: sorted(stopped) == ["inner", "outer"])
        assert await asking == b""


@pytest.mark.parametrize("ahead", [False, True])
async def test_tls_in_a_tunnel_works_for_a_client_that_does_not_wait(ahead: bool) -> None:
    server, trusting = contexts()
    connections: list[ClientConnection] = []

    async def intercept(exchange: Exchange) -> None:
        tunnel = await exchange.take_over()
        if ahead:
            await asyncio.sleep(0.02)
        connections.append(await serve_tls(tunnel, server, inside))

    async with serving(intercept) as listener:
        listener.epoch = 3
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = trusting.wrap_bio(incoming, outgoing, server_hostname="localhost")
        async with raw(listener.port) as client:
            with pytest.raises(ssl.SSLWantReadError):
                tls.do_handshake()
            client.send(CONNECT + (outgoing.read() if ahead else b""))
            await client.head()
            client.send(outgoing.read())
            await _shake(tls, client, incoming, outgoing)
            for path in (b"/one", b"/two"):
                tls.write(b"GET %b HTTP/1.1\r\n\r\n" % path)
                client.send(outgoing.read())
                assert b"%b tls=True born=3" % path in await _plain(tls, client, incoming)
            assert set(connections) == listener.connections
            assert connections[0].peer == client.writer.get_extra_info("sockname")
        await connections[0].wait_closed()


async def _shake(tls: ssl.SSLObject, client: Raw, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> None:
    while True:
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            client.send(outgoing.read())
            incoming.write(await client.reader.read(10_000))
        else:
            client.send(outgoing.read())
            return


async def _plain(tls: ssl.SSLObject, client: Raw, incoming: ssl.MemoryBIO) -> bytes:
    while True:
        try:
            return tls.read(10_000)
        except ssl.SSLWantReadError:
            incoming.write(await client.reader.read(10_000))


def _distrust(client: socket.socket) -> None:
    """A client that does not know who signed our certificate."""
    with client, pytest.raises(ssl.SSLCertVerificationError):
        ssl.create_default_context().wrap_socket(client, server_hostname="localhost")


async def test_a_rejected_certificate_is_reported() -> None:
    server, _ = contexts()
    refusals: list[OSError] = []

    async def intercept(exchange: Exchange) -> None:
        tunnel = await exchange.take_over()
        try:
            await serve_tls(tunnel, server, inside)
        except OSError as error:
            refusals.append(error)

    async with serving(intercept) as listener:
        client = socket.create_connection(("127.0.0.1", listener.port))
        client.sendall(CONNECT)
        await asyncio.to_thread(client.recv, 1000)
        await asyncio.to_thread(_distrust, client)
        async with raw(listener.port) as leaving:
            leaving.send(CONNECT)
            await leaving.head()
        await until(lambda: len(refusals) == 2 and not listener.connections)
    assert isinstance(refusals[0], ssl.SSLError)
    assert isinstance(refusals[1], ConnectionResetError)


async def test_a_tunnel_can_be_looked_into_and_go_on_as_http_without_tls() -> None:
    looks: list[bytes] = []

    async def plain(exchange: Exchange) -> None:
        tunnel = await exchange.take_over()
        looks.append(await tunnel.peek())
        serve_plain(tunnel, inside)

    async with serving(plain) as listener, raw(listener.port) as client:
        client.send(CONNECT)
        await client.head()
        for path in (b"/one", b"/two"):
            client.send(b"GET %b HTTP/1.1\r\n\r\n" % path)
            assert (await client.reply())[2] == path + b" tls=False born=0"
    assert looks == [b"GET /one HTTP/1.1\r\n\r\n"]


async def test_a_blind_tunnel_copies_every_byte_both_ways_and_each_direction_ends_by_itself() -> None:
    size = 5_000_000

    async def connect(exchange: Exchange) -> None:
        host, _, port = exchange.head.target.rpartition(":")
        await tunnel(await exchange.take_over(), host, int(port))

    async def counting(peer: Raw) -> None:
        total = len(await peer.rest())  # the client's direction ends first
        peer.send(b"%d " % total + b"y" * size)
        await peer.writer.drain()

    async with serving(connect) as listener, upstream(counting) as url, raw(listener.port) as client:
        client.send(b"CONNECT %b HTTP/1.1\r\n\r\nx" % url.removeprefix("http://").encode())
        await client.head()
        client.send(b"x" * (size - 1))
        client.writer.write_eof()
        assert await client.rest() == b"%d " % size + b"y" * size
        await until(lambda: not listener.connections)


async def test_a_blind_tunnel_holds_little_for_a_side_that_does_not_read() -> None:
    sent = 0

    async def connect(exchange: Exchange) -> None:
        host, _, port = exchange.head.target.rpartition(":")
        await tunnel(await exchange.take_over(), host, int(port))

    async def flood(peer: Raw) -> None:
        nonlocal sent
        while True:
            peer.send(b"x" * 50_000)
            await peer.writer.drain()
            sent += 50_000

    async with serving(connect) as listener, upstream(flood) as url, raw(listener.port, limit=1000) as client:
        client.send(b"CONNECT %b HTTP/1.1\r\n\r\n" % url.removeprefix("http://").encode())
        await client.head()
        before = -1
        while sent != before:
            before = sent
            await asyncio.sleep(0.1)
        (connection,) = listener.connections
        assert connection.transport.get_write_buffer_size() < 1_000_000
        await client.reader.readexactly(3_000_000)
        await until(lambda: sent > before)


async def test_a_tunnel_without_a_server_ends_with_the_reason() -> None:
    failures: list[UpstreamFailed] = []

    async def connect(exchange: Exchange) -> None:
        try:
            await tunnel(await exchange.take_over(), "127.0.0.1", 1)
        except UpstreamFailed as failed:
            failures.append(failed)

    async with serving(connect) as listener, raw(listener.port) as client:
        client.send(CONNECT)
        await client.rest()
    assert [failed.kind for failed in failures] == ["refused"]
