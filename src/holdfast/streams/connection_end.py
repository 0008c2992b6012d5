"""One end of a carried connection: read and written alternately, until it is joined to the other end."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from socket import SO_ERROR, SO_RCVBUF, SOL_SOCKET, socket
from typing import TypeAlias

from holdfast.streams.socket_stream import ORPHANED_S, BodyBuffer, SocketStream

ROOM = 1 << 20
"""Bytes per read: a large transfer then needs three quarters of the CPU that it needs with 256 kB."""


_WRITE_COPIES = sys.version_info < (3, 12)
"""asyncio's own transports copy unsent data; newer ones and uvloop's do not."""


class ConnectionEnd(SocketStream):
    """A connection whose directions end separately. `arrived` is called when it is connected."""

    def __init__(self, arrived: Callable[[ConnectionEnd], None] | None = None) -> None:
        super().__init__()
        self.left = asyncio.Event()
        """Set when the other side sends no more, before the two are joined."""
        self._writes_before = 0
        """Number of writes to it before the other side left."""
        self._refused = False
        """Whether it answered a later write with a reset."""
        self._tap: Callable[[bytes], None] | None = None
        self._arrived = arrived
        self._inflow = BodyBuffer(self)
        self.read = self._inflow.get
        """Returns the next bytes, at least one; b"" at the end."""
        self.on_data = self._inflow.feed
        self.on_lost = self._mark_left

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._arrived is not None:
            self._arrived(self)

    def add_tap(self, tap: Callable[[bytes], None]) -> None:
        """Give `tap` a copy of all data that arrives from now on."""
        self._tap = tap
        self.on_data = self._copy_to_tap(self.on_data)

    def _copy_to_tap(self, take: Callable[[bytes], None]) -> Callable[[bytes], None]:
        if (tap := self._tap) is None:
            return take

        def take_both(data: bytes) -> None:
            tap(data)
            take(data)

        return take_both

    def eof_received(self) -> bool:
        if self.other is not None:
            return super().eof_received()
        self._mark_left()
        return True

    def _mark_left(self) -> None:
        self._writes_before = self.writes
        self._inflow.end()
        self.left.set()

    def is_receiving(self) -> bool:
        """Return whether the other side still receives.

        A side that sends no more has closed, or still reads: only a reset in response to sent bytes shows which.
        """
        if self.is_gone or not self.left.is_set():
            return not self.is_gone
        # The kernel reports a reset once, on the next look at the socket. It is remembered, because a second look would
        # show nothing.
        if self.transport.get_extra_info("socket").getsockopt(SOL_SOCKET, SO_ERROR):  # checked once
            self._refused = True
        return self.writes > self._writes_before and not self._refused

    async def finish(self) -> None:
        self.end_sending()

    def end_sending(self) -> None:
        """End the sending direction; incoming data is still read."""
        if not self.end():
            self.close()

    def put_back(self, data: bytes) -> None:
        """Put back bytes that were read too early; nothing has arrived since."""
        self._inflow.feed(data + self._inflow.read_available())

    def join_to(
        self, other: ConnectionEnd, take: Callable[[bytes], None], protocol: asyncio.BaseProtocol | None = None
    ) -> None:
        """Join it to the other end. `take` gets existing and future data, unless that goes to a `protocol`."""
        self.other = other
        self.on_data = self._copy_to_tap(take)
        if self._inflow.waiting:
            take(self._inflow.read_available())
        if self.lost:
            other.close_within(ORPHANED_S)
        elif self._inflow.ended:
            self._ended = True
            other.end_sending()
        elif protocol is not None:
            self.transport.set_protocol(protocol)


Upstream: TypeAlias = tuple[str, int] | str | Callable[[], Awaitable[socket]]
"""Host and port, the path of a Unix socket, or a function that connects."""


async def dial(upstream: Upstream, limit_s: float = 10.0) -> ConnectionEnd:
    """Return a new connection; raise OSError (including TimeoutError) if it fails."""
    end, loop = ConnectionEnd(), asyncio.get_running_loop()
    try:
        async with asyncio.timeout(limit_s):
            if isinstance(upstream, str):
                await loop.create_unix_connection(lambda: end, upstream)
            elif isinstance(upstream, tuple):
                await loop.create_connection(lambda: end, *upstream)
            else:
                await loop.create_connection(lambda: end, sock=await upstream())
    except BaseException:
        end.abort()
        raise
    return end


class _Room(threading.local):
    """The buffer for bytes in transit: one for all connections of a thread, because nothing stays in it."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(ROOM))


_ROOM = _Room()


class _CopyingEnd(asyncio.BufferedProtocol):
    """Passes bytes on unread; everything else is left to the end itself."""

    def __init__(self, end: ConnectionEnd, other: ConnectionEnd) -> None:
        self._end = end
        self._out = other.transport
        # A transport that does not copy unsent data keeps a view of the shared buffer. If some of it is unsent after a
        # write, the buffer is left to the transport, and a new one is taken for the next read.
        self._keeps_view = not (_WRITE_COPIES and isinstance(self._out, asyncio.Transport))
        if not end.is_gone:  # with a larger read size, the kernel would buffer tens of megabytes for a slow reader
            end.transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_RCVBUF, ROOM)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end.connection_lost(exc)

    def eof_received(self) -> bool:
        return self._end.eof_received()

    def pause_writing(self) -> None:
        self._end.pause_writing()

    def resume_writing(self) -> None:
        self._end.resume_writing()

    def get_buffer(self, sizehint: int) -> memoryview:
        return _ROOM.view

    def buffer_updated(self, nbytes: int) -> None:
        self._out.write(_ROOM.view[:nbytes])
        if self._keeps_view and self._out.get_write_buffer_size():
            _ROOM.view = memoryview(bytearray(ROOM))


async def join(one: ConnectionEnd, other: ConnectionEnd) -> None:
    """Copy in both directions until both have ended; data that neither side holds back passes unread."""
    for end, out in ((one, other), (other, one)):
        end.join_to(out, out.send, None if end._tap else _CopyingEnd(end, out))
    await one.over.wait()
    await other.over.wait()
