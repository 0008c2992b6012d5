"""Raw peers for the HTTP/1.1 transport, and a runner that lets nothing be left behind."""

from __future__ import annotations

import asyncio
import datetime
import gc
import inspect
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from holdfast.http1.server import Exchange, Listener, serve


def run(test: Coroutine[Any, Any, None], *, collect: bool = True) -> None:
    """Runs a test; fails on anything asyncio complains of, on tasks that are left over and on sockets left open."""
    complaints: list[dict[str, Any]] = []

    async def watched() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        await asyncio.wait_for(test, 10)
        await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if handshakes := {task for task in left if "_accept_connection" in repr(task.get_coro())}:
            await asyncio.wait(handshakes, timeout=5)  # asyncio's own, of a TLS client that has left
            left = {task for task in left if not task.done()}
        assert not left, left

    if collect:
        gc.freeze()  # what was there before need not be looked at
    asyncio.run(watched())
    if collect:
        gc.collect()
    assert not complaints, complaints


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is a coroutine function; a conftest.py imports this hook for its folder."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@asynccontextmanager
async def serving(handler: Callable[[Exchange], Awaitable[None]], **options: Any) -> AsyncIterator[Listener]:
    listener = await serve(handler, **options)
    try:
        yield listener
    finally:
        await listener.close()
        assert not listener.connections


class Raw:
    """A client that sends bytes and looks at bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def reply(self) -> tuple[int, dict[str, str], bytes]:
        """One reply with a length or chunks: status, headers (small letters), body."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        if headers.get("transfer-encoding") == "chunked":
            return int(first.split()[1]), headers, await self._chunked()
        return int(first.split()[1]), headers, await self.reader.readexactly(int(headers.get("content-length", 0)))

    async def head(self) -> bytes:
        return await self.reader.readuntil(b"\r\n\r\n")

    async def rest(self) -> bytes:
        return await self.reader.read()

    async def _chunked(self) -> bytes:
        body = b""
        while size := int(await self.reader.readline(), 16):
            body += (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readline()
        return body


@asynccontextmanager
async def raw(port: int, **options: Any) -> AsyncIterator[Raw]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, **options)
    try:
        yield Raw(reader, writer)
    finally:
        writer.transport.abort()
        with suppress(OSError):  # the other side was faster
            await writer.wait_closed()


@asynccontextmanager
async def upstream(talk: Callable[[Raw], Awaitable[None]], **options: Any) -> AsyncIterator[str]:
    """A server that says what it is told to, once a connection; its URL."""
    tasks: set[asyncio.Task[None]] = set()

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await talk(Raw(reader, writer))
        except (asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            pass  # the client was faster, or the test is over
        finally:
            writer.close()
            tasks.discard(task)

    server = await asyncio.start_server(accepted, "127.0.0.1", 0, **options)
    try:
        scheme = "https" if "ssl" in options else "http"
        yield f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        while tasks:
            await asyncio.sleep(0.001)


HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world"
Talk = Callable[[Raw], Awaitable[None]]


def saying(*replies: bytes, then: str = "wait") -> Talk:
    """Answers each request with the next of these bytes, then waits or closes."""

    async def talk(peer: Raw) -> None:
        for reply in replies:
            await peer.head()
            peer.send(reply)
            await peer.writer.drain()
        if then == "wait":
            await peer.rest()

    return talk


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.002)


@cache
def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """TLS for a server called localhost, and for a client that trusts it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with TemporaryDirectory() as folder:
        path = Path(folder, "both.pem")
        path.write_bytes(secret + pem)
        server.load_cert_chain(path)
    client = ssl.create_default_context(cadata=pem.decode())
    client.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF  # Debian 12's Python sets it: a cut would look like a farewell
    return server, client
