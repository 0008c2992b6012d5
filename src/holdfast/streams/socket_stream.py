"""One TCP or TLS connection: where its bytes go, with memory bounded in both directions.

The buffer of unread bytes is here, too, because filling and emptying it pauses and resumes the connection.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from holdfast.streams.sockets import build_connect_error, connect_by_name

BODY, PIPELINE, UPGRADE, PEER = 1, 2, 4, 8
"""Reasons to pause reading: an unread body, waiting requests, an unanswered CONNECT, a full other end."""
ALL = BODY | PIPELINE | UPGRADE | PEER

BUFFER_HIGH = 262_144
"""Bytes of a body that may wait before reading is paused."""
WRITE_HIGH = 65_536
READ_MOST = 65_536
"""Bytes per read. asyncio's own 256 KiB make the allocator map and unmap memory on each read."""
HANDSHAKE_S = 10.0
CLOSE_S = 1.0
"""How long the client has to finish TLS, or to receive what was sent before a cut."""
_NUMBERS = re.compile(r"[\d.]+|[^/]*:[^/]*")
"""An address that is not a name."""
ORPHANED_S = 30.0
"""How long a half-closed tunnel has to receive the other side's last bytes."""


class SocketStream(asyncio.Protocol):
    """A connection. `on_data` gets incoming data; `send` never blocks, `drain` waits until there is room to send."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.raw: asyncio.Transport | None = None
        """The TCP connection itself; `transport` is the TLS on it, if any."""
        self.other: SocketStream | None = None
        """The other end, once two connections are joined."""
        self.is_choked = False
        self.writes = 0
        """Number of calls of `write` so far."""
        self.lost = False
        self.over = asyncio.Event()
        """Set when the connection is gone and its socket closed."""
        self.on_data: Callable[[bytes], None] = discard
        self.on_lost: Callable[[], None] = lambda: None
        """Called when the connection is lost."""
        self._ended = False
        self._settled = False  # between two transports, during the switch from TCP to TLS
        self.holds = 0
        """The reasons for which reading is paused; 0: it is not."""
        self._room = asyncio.Event()

    # -- called by asyncio ------------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)  # uvloop's transports do not derive from it
        self.raw = self.raw or transport
        self.transport = transport
        transport.set_write_buffer_limits(high=WRITE_HIGH)
        if hasattr(transport, "max_size"):  # asyncio's own, which read a socket themselves
            transport.max_size = READ_MOST
        self._settled = True
        if self.holds:
            transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        self.on_data(data)

    def eof_received(self) -> bool:
        """Handle the end of the other side: the connection is gone, unless two connections are joined.

        Then each direction ends separately.
        """
        if self.other is None:
            self.abort()
            return False
        self._ended = True
        if self.raw is not self.transport:
            return False  # TLS has no half-open connections
        if self.other._ended or not self.other.end():
            self.other.close()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        if self.lost:
            return
        self.lost = True
        self.on_lost()
        self.is_choked = False
        self._room.set()
        self.over.set()
        if self.other is not None:
            self.other.close_within(ORPHANED_S)

    def pause_writing(self) -> None:
        self.is_choked = True
        self._room.clear()
        if self.other is not None:
            self.other.hold(PEER)

    def resume_writing(self) -> None:
        self.is_choked = False
        self._room.set()
        if self.other is not None:
            self.other.release(PEER)

    # -- called by the rest of the package -------------------------------------------------------
    @property
    def is_gone(self) -> bool:
        raw = self.raw
        return (
            self.lost or raw is None or raw.is_closing() or (self.transport is not raw and self.transport.is_closing())
        )

    def send(self, data: bytes) -> None:
        if not self.lost:  # uvloop's transports raise where asyncio's ignore it
            self.transport.write(data)

    async def write(self, data: bytes) -> None:
        """Send, and wait while the other side does not read; raise ConnectionResetError once it is gone."""
        self.writes += 1
        if self.is_gone:
            raise ConnectionResetError("the other side is gone")
        self.send(data)
        await self.drain()

    async def drain(self) -> None:
        """Wait while the other side does not read."""
        while self.is_choked:
            await self._room.wait()

    def hold(self, why: int) -> None:
        """Pause reading until every reason is released."""
        if not self.holds and self._settled and not self.lost:
            self.transport.pause_reading()
        self.holds |= why

    def release(self, why: int) -> None:
        if self.holds & why:
            self.holds &= ~why
            if not self.holds and self._settled and not self.lost:
                self.transport.resume_reading()

    def end(self) -> bool:
        """End this direction; False if that requires closing the connection."""
        if self.is_gone or not self.transport.can_write_eof():
            return False
        try:
            self.transport.write_eof()
        except OSError:  # the peer has reset it, and that was not read yet
            return False
        return True

    def close(self) -> None:
        """Close after sending what is buffered."""
        if self.raw is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close immediately; unsent data is dropped."""
        if self.raw is not None:
            self.raw.abort()

    def break_connection(self, *, reset: bool) -> None:
        """Break the TCP connection after what was sent, whatever protocol runs on it; `reset` breaks it now, with RST.

        Without `reset` the other side sees a normal end, even if it has sent data that was not read.
        """
        if self.raw is None or self.lost:
            return
        sock: socket.socket = self.raw.get_extra_info("socket")
        # A linger time of zero makes close() send RST instead of FIN. Without it, an ordinary close sends FIN only if
        # everything that arrived has been read; so the write side is shut down first, and the socket closed later.
        if reset:
            if sock.fileno() >= 0 and sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.raw.abort()
        else:
            if not self.raw.get_write_buffer_size():
                with suppress(OSError), sock.dup() as own:  # it is closed, or was reset; uvloop's cannot be shut down
                    own.shutdown(socket.SHUT_WR)  # unread bytes would turn a plain close into a reset
            self.close_within(CLOSE_S)

    def close_within(self, seconds: float) -> None:
        """Close TCP after what was sent has left, or after a timeout."""
        if self.raw is not None and not self.lost:
            self.raw.close()
            if self.raw.get_write_buffer_size():
                self.loop.call_later(seconds, self.raw.abort)

    async def connect(
        self, address: str, port: int, connect_s: float, context: ssl.SSLContext | None = None, name: str = ""
    ) -> None:
        """Connect to a server, with TLS if there is a context (`name` is the expected name). Raises UpstreamFailed."""
        try:
            async with asyncio.timeout(connect_s):
                server = name if context else None
                if _NUMBERS.fullmatch(address):
                    await self.loop.create_connection(lambda: self, address, port, ssl=context, server_hostname=server)
                else:
                    sock = await connect_by_name(address, port)
                    await self.loop.create_connection(lambda: self, sock=sock, ssl=context, server_hostname=server)
        except BaseException as error:
            self.abort()
            if not isinstance(error, OSError | UnicodeError):
                raise
            raise build_connect_error(error, name or address, port, connect_s, tls=context is not None) from error

    async def start_tls(self, transport_below: asyncio.Transport, context: ssl.SSLContext, early: bytes = b"") -> None:
        """Start TLS as the server over `transport_below`; raise OSError (including SSLError) if the handshake fails.

        `early` holds bytes of the client that were already read.
        """
        self._settled = False
        try:
            if transport_below.is_closing():
                raise ConnectionResetError("the client has disconnected")
            # The first bytes of the handshake were read before TLS existed. start_tls() installs its protocol in a
            # callback of its own, so the bytes are fed one callback later, when that protocol has started.
            if early:
                self.loop.call_soon(self.loop.call_soon, _feed_tls, transport_below, early)
            transport = await self.loop.start_tls(
                transport_below,
                self,
                context,
                server_side=True,
                ssl_handshake_timeout=HANDSHAKE_S,
                ssl_shutdown_timeout=CLOSE_S,
            )
            if transport is None:
                raise ConnectionResetError("the client disconnected during the TLS handshake")
        except BaseException:
            self.abort()
            self.loop.call_soon(self.connection_lost, None)  # TLS does not report it; by then the socket is closed
            raise
        self.connection_made(transport)


class BodyBuffer:
    """An incoming body, buffered until it is read. While too much is waiting, reading is paused."""

    __slots__ = ("_failure", "_parts", "_waiter", "_wire", "ended", "waiting")

    def __init__(self, wire: SocketStream) -> None:
        self.ended = False
        """Whether the last byte has arrived; it may still be waiting here."""
        self._wire: SocketStream | None = wire
        self._parts: list[bytes] = []
        self.waiting = 0
        """Bytes that have arrived and were not read yet."""
        self._failure: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    def feed(self, data: bytes) -> None:
        self._parts.append(data)
        self.waiting += len(data)
        if self.waiting > BUFFER_HIGH and self._wire is not None:
            self._wire.hold(BODY)
        self._wake()

    def end(self) -> None:
        """Mark the body as complete: the connection is free for what follows."""
        self.ended = True
        self._detach_stream()

    def fail(self, failure: Exception) -> None:
        """End the body with a failure, which is raised once everything that arrived has been read.

        No effect after an end.
        """
        if not self.ended and self._failure is None:
            self._failure = failure
            self._detach_stream()

    async def get(self) -> bytes:
        """Return everything that has arrived since the last call, at least a byte; b"" at the end."""
        while not self._parts:
            if self._failure is not None:
                raise self._failure
            if self.ended:
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self.read_available()

    async def read_all(self, limit: int) -> bytes | None:
        """Return everything up to the end; None if that is more than the limit."""
        parts, size = [], 0
        while size <= limit and (data := await self.get()):
            parts.append(data)
            size += len(data)
        return b"".join(parts) if size <= limit else None

    def read_available(self) -> bytes:
        """Return everything that has arrived, without waiting."""
        parts = self._parts
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self.waiting = 0
        if self._wire is not None:
            self._wire.release(BODY)
        return data

    def _detach_stream(self) -> None:
        if self._wire is not None:
            self._wire.release(BODY)
            self._wire = None
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def discard(data: bytes) -> None:
    """Drop unwanted data."""


def _feed_tls(transport: asyncio.Transport, early: bytes) -> None:
    """Pass early bytes to TLS: by now it is the transport's protocol and has started."""
    protocol = transport.get_protocol()
    if hasattr(protocol, "get_buffer") and not transport.is_closing():  # a BufferedProtocol, or uvloop's
        tls = cast("asyncio.BufferedProtocol", protocol)
        memoryview(tls.get_buffer(len(early)))[: len(early)] = early
        tls.buffer_updated(len(early))
