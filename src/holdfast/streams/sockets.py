"""Sockets as the system knows them: connecting by name, sending raw bytes, Unix addresses, and who is still there."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import ssl
from asyncio.staggered import staggered_race
from asyncio.trsock import TransportSocket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, Literal, TypeAlias

from holdfast.processes.peers import can_still_read

FailureKind: TypeAlias = Literal["dns", "refused", "tls", "timeout", "closed", "protocol"]


class UpstreamFailed(Exception):
    """A server could not be reached, or its answer was not valid HTTP."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.message = message


class NotConnected(UpstreamFailed):
    """No connection could be made; see its cause."""


def build_connect_error(error: Exception, host: str, port: int, connect_s: float, *, tls: bool = False) -> NotConnected:
    """Return why a connection, with or without TLS, could not be made."""
    where = f"{host}:{port}"
    match error:
        case socket.gaierror() | UnicodeError():
            return NotConnected("dns", f"the name {host} cannot be resolved: {error}")
        case ssl.SSLError() | ConnectionResetError() | ConnectionAbortedError() if tls:
            return NotConnected("tls", f"no TLS with {where}: {error}")
        case TimeoutError():
            return NotConnected("timeout", f"no connection to {where} within {connect_s:g} s")
    return NotConnected("refused", f"no connection to {where}: {error}")


NEXT_ADDRESS_S = 0.25
"""How long one address of a name is tried before the next one is tried in parallel."""

_AddressInfo: TypeAlias = "tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]"


async def connect_by_name(name: str, port: int, room: int | None = None) -> socket.socket:
    """Return the socket of the first reachable address; raise OSError (gaierror if the name does not exist).

    `room` is how much the system may read ahead; it must be set before connecting.
    """
    addresses = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    opened: list[socket.socket] = []
    try:
        sock: socket.socket | None
        # Happy Eyeballs (RFC 8305): the families alternate, and the next attempt does not wait for a failure.
        own = [address for address in addresses if address[0] == addresses[0][0]]
        others = [address for address in addresses if address[0] != addresses[0][0]]
        alternating = (address for address in chain.from_iterable(zip_longest(own, others)) if address is not None)
        tries = [partial(_connect_socket, address, opened, room) for address in alternating]
        sock, _, failures = await staggered_race(tries, NEXT_ADDRESS_S)
    except BaseException:  # one may have succeeded just now
        for sock in opened:
            sock.close()
        raise
    if sock is not None:
        return sock
    by_message = {str(failure): failure for failure in failures if failure is not None}
    if len(by_message) == 1:
        raise next(iter(by_message.values()))
    raise OSError("; ".join(by_message) or f"{name} has no address")


async def _connect_socket(address_info: _AddressInfo, opened: list[socket.socket], room: int | None) -> socket.socket:
    family, kind, proto, _, address = address_info
    sock = socket.socket(family, kind, proto)
    try:
        sock.setblocking(False)
        if room is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        await asyncio.get_running_loop().sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    opened.append(sock)
    return sock


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
    host: str, port: int, seconds: float, trust: Callable[[], ssl.SSLContext] | None, *, room: int | None = None
) -> RawSocket:
    """Return a new connection, with TLS if there is a `trust`.

    Raises NotConnected if there is none in time. `room`: how much the system may read ahead.
    """
    try:
        async with asyncio.timeout(seconds):
            sock = await connect_by_name(host, port, room)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                if trust is None:
                    return RawSocket(sock)
                secured = TlsSocket(sock, host, trust())
                await secured.shake_hands()
                return secured
            except BaseException:
                sock.close()
                raise
    except (OSError, UnicodeError) as error:
        raise build_connect_error(error, host, port, seconds, tls=trust is not None) from error


TLS_HANDSHAKE = 0x16
"""The first byte of a connection that begins with TLS."""
TLS_FAILURE = bytes((0x15, 3, 3, 0, 2, 2, 40))
"""A fatal alert: handshake_failure."""

LONGEST = 100
"""Bytes of a path that every system accepts as a socket's address: Linux takes 107, macOS 103."""


@contextmanager
def open_socket_path(folder: Path, name: str) -> Iterator[str]:
    """Yield the path at which to bind or connect a socket in a folder of any depth."""
    path = str(folder / name)
    if len(os.fsencode(path)) <= LONGEST:
        yield path
        return
    # The kernel limits the length of the address, not of the file's path: name the folder by an open descriptor.
    at = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{at}/{name}"
    finally:
        os.close(at)


_ENDED = getattr(select, "POLLRDHUP", 0)  # Linux only; elsewhere a client's end is known once it is read
_BROKEN = select.POLLHUP | select.POLLERR | select.POLLNVAL


def has_left(sock: TransportSocket, *, half: bool) -> bool:
    """Return whether the other end is closed.

    An end of data may mean that the client has closed, or only that it sends no more but still reads. With `half` the
    second does not count as closed, if the kernel can tell: for clients on this machine's own network.
    """
    if sock.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(sock.fileno(), _ENDED)
    events = sum(event for _, event in poll.poll(0))
    if events & _BROKEN:
        return True
    return bool(events & _ENDED) and not (half and _is_still_reading(sock))


def _is_still_reading(sock: TransportSocket) -> bool:
    """Return whether a client that has ended its own direction still holds its socket and has not shut down the other
    one.
    """
    if sock.family == socket.AF_UNIX:
        return True  # poll itself detects a closed one
    try:
        peer, own = sock.getpeername(), sock.getsockname()
    except OSError:
        return False
    return can_still_read((peer[0], peer[1]), (own[0], own[1]))
