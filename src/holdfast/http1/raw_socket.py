"""Raw mode: a socket, with or without TLS, that sends any bytes and can be read even after a failed send."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

from holdfast.http1.outgoing_request import Endpoint
from holdfast.streams.failures import build_connect_error
from holdfast.streams.socket_stream import connect_by_name

_READ = 65_536


class RawSocket:
    """A connection from `open_socket`. Close it after use. All its failures are OSErrors."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._loop = asyncio.get_running_loop()

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self._sock, data)

    async def receive(self, most: int = _READ) -> bytes:
        """Return the next bytes; empty at the end."""
        return await self._loop.sock_recv(self._sock, most)

    def close(self) -> None:
        self._sock.close()


class TlsSocket(RawSocket):
    """The same socket with TLS, once `shake_hands` has returned."""

    def __init__(self, sock: socket.socket, name: str, trust: ssl.SSLContext) -> None:
        super().__init__(sock)
        self._coming, self._going = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject = trust.wrap_bio(self._coming, self._going, server_hostname=name)

    async def shake_hands(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._receive_more():
                    raise ConnectionResetError("the server left during the TLS handshake") from None
        await self._flush()

    async def send(self, data: bytes) -> None:
        self._tls.write(data)
        await self._flush()

    async def receive(self, most: int = _READ) -> bytes:
        while True:
            try:
                return self._tls.read(most)
            except ssl.SSLWantReadError:
                if not await self._receive_more():
                    return b""
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""

    async def _flush(self) -> None:
        if data := self._going.read():
            await super().send(data)

    async def _receive_more(self) -> bool:
        data = await super().receive()
        self._coming.write(data)
        return bool(data)


async def open_socket(
    place: Endpoint, seconds: float, trust: Callable[[], ssl.SSLContext], *, room: int | None = None
) -> RawSocket:
    """Return a new connection.

    Raises NotConnected if there is none in time. `room`: how much the system may read ahead.
    """
    tls = place.scheme == "https"
    try:
        async with asyncio.timeout(seconds):
            sock = await connect_by_name(place.host, place.port, room)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                if not tls:
                    return RawSocket(sock)
                secured = TlsSocket(sock, place.host, trust())
                await secured.shake_hands()
                return secured
            except BaseException:
                sock.close()
                raise
    except (OSError, UnicodeError) as error:
        raise build_connect_error(error, place.host, place.port, seconds, tls=tls) from error
