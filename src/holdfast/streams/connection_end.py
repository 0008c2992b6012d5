"""One end of a carried connection: read and written by turns, until it is joined to the other end."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from socket import SO_ERROR, SO_RCVBUF, SOL_SOCKET

from holdfast.streams.socket_stream import ORPHANED_S, BodyBuffer, SocketStream

ROOM = 1 << 20
"""Bytes that are read at a time: a large transfer needs three quarters of the CPU that it needs with 256 kB."""


_WRITE_COPIES = sys.version_info < (3, 12)
"""asyncio's own transports copy what has not left; newer ones keep it where it is, as uvloop's do."""


class ConnectionEnd(SocketStream):
    """A connection whose two directions end by themselves. `arrived` hears of it when it is there."""

    def __init__(self, arrived: Callable[[ConnectionEnd], None] | None = None) -> None:
        super().__init__()
        self.left = asyncio.Event()
        """Set when the other side sends no more, before the two are joined."""
        self._sent_since = False
        """Something was sent to it after that."""
        self._refused = False
        """It answered that with a reset."""
        self._arrived = arrived
        self._inflow = BodyBuffer(self)
        self.on_data = self._inflow.feed
        self.on_lost = self._leave

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._arrived is not None:
            self._arrived(self)

    def eof_received(self) -> bool:
        if self.other is not None:
            return super().eof_received()
        self._leave()
        return True

    def _leave(self) -> None:
        self._inflow.end()
        self.left.set()

    async def read(self) -> bytes:
        """What has come, at least a byte; b"" when nothing more comes."""
        return await self._inflow.get()

    def takes(self) -> bool:
        """Whether the other side is there for what is sent.

        One that sends no more has closed, or still listens: only bytes sent since tell, by the reset that they meet.
        """
        if self.gone or not self.left.is_set():
            return not self.gone
        if self.transport.get_extra_info("socket").getsockopt(SOL_SOCKET, SO_ERROR):  # told once
            self._refused = True
        return self._sent_since and not self._refused

    async def write(self, data: bytes) -> None:
        """Sends, and waits while the other side does not read; ConnectionResetError once it is gone."""
        if self.gone:
            raise ConnectionResetError("the other side is gone")
        self.send(data)
        self._sent_since = self.left.is_set()
        await self.drain()

    def finish(self) -> None:
        """Nothing more is sent; what comes is still read."""
        if not self.end():
            self.close()

    def put_back(self, data: bytes) -> None:
        """Bytes that were read too early; nothing has come since."""
        held = self._inflow.take() if self._inflow.waiting else b""
        self._inflow.feed(data + held)

    def pass_to(
        self, other: ConnectionEnd, take: Callable[[bytes], None], protocol: asyncio.BaseProtocol | None = None
    ) -> None:
        """Joins it to the other end. `take` gets what has come and what comes, unless that goes to a `protocol`."""
        self.other = other
        self.on_data = take
        if self._inflow.waiting:
            take(self._inflow.take())
        if self.lost:
            other.close_within(ORPHANED_S)
        elif self._inflow.ended:
            self._ended = True
            other.finish()
        elif protocol is not None:
            self.transport.set_protocol(protocol)


async def dial(upstream: tuple[str, int] | str, limit_s: float = 10.0) -> ConnectionEnd:
    """A connection to host and port, or to a Unix socket; raises OSError (TimeoutError too) if there is none."""
    end, loop = ConnectionEnd(), asyncio.get_running_loop()
    try:
        async with asyncio.timeout(limit_s):
            if isinstance(upstream, str):
                await loop.create_unix_connection(lambda: end, upstream)
            else:
                await loop.create_connection(lambda: end, *upstream)
    except BaseException:
        end.abort()
        raise
    return end


class _Room:
    """Where bytes are read into on their way."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(ROOM))


class _Rooms(threading.local):
    """One room for all connections of a thread, as nothing stays there."""

    def __init__(self) -> None:
        self.room = _Room()


_ROOMS = _Rooms()


class _CopyingEnd(asyncio.BufferedProtocol):
    """Passes bytes on unseen; all else is left to the end itself."""

    def __init__(self, end: ConnectionEnd, other: ConnectionEnd) -> None:
        self._end = end
        self._out = other.transport
        self._room = _ROOMS.room
        self._kept = not (_WRITE_COPIES and isinstance(self._out, asyncio.Transport))
        if not end.gone:  # seeing how much is read at a time, the kernel would take tens of megabytes for a slow reader
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
        return self._room.view

    def buffer_updated(self, nbytes: int) -> None:
        self._out.write(self._room.view[:nbytes])
        if self._kept and self._out.get_write_buffer_size():
            self._room.view = memoryview(bytearray(ROOM))


async def join(one: ConnectionEnd, other: ConnectionEnd) -> None:
    """Copies both ways until both have ended; what neither side holds back passes unseen."""
    one.pass_to(other, other.send, _CopyingEnd(one, other))
    other.pass_to(one, one.send, _CopyingEnd(other, one))
    await one.over.wait()
    await other.over.wait()
