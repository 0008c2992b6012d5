"""Two ends of a carried connection joined: what comes at one goes out at the other, in the callback that brought it."""

from __future__ import annotations

import asyncio
import sys
import threading
from socket import SO_RCVBUF, SOL_SOCKET

from holdfast.planes.tcp.connection_end import ConnectionEnd

ROOM = 1 << 20
"""Bytes that are read at a time: a large transfer needs three quarters of the CPU that it needs with 256 kB."""


_WRITE_COPIES = sys.version_info < (3, 12)
"""asyncio's own transports copy what has not left; newer ones keep it where it is, as uvloop's do."""


class _Room:
    """Where bytes are read into on their way."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(ROOM))


class _Rooms(threading.local):
    """One room for all connections of a thread, as nothing stays there."""

    def __init__(self) -> None:
        self.room = _Room()


_ROOMS = _Rooms()


class _Joined(asyncio.BaseProtocol):
    """What both kinds of joined ends do alike: all but the bytes is left to the end itself."""

    def __init__(self, end: ConnectionEnd, other: ConnectionEnd) -> None:
        self._end = end
        self._out = other.transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._end.connection_lost(exc)

    def eof_received(self) -> bool:
        return self._end.eof_received()

    def pause_writing(self) -> None:
        self._end.pause_writing()

    def resume_writing(self) -> None:
        self._end.resume_writing()


class _CopyingEnd(_Joined, asyncio.BufferedProtocol):
    """Passes bytes on unseen."""

    def __init__(self, end: ConnectionEnd, other: ConnectionEnd) -> None:
        super().__init__(end, other)
        self._room = _ROOMS.room
        self._kept = not (_WRITE_COPIES and isinstance(self._out, asyncio.Transport))
        if not end.gone:  # seeing how much is read at a time, the kernel would take tens of megabytes for a slow reader
            end.transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_RCVBUF, ROOM)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._room.view

    def buffer_updated(self, nbytes: int) -> None:
        self._out.write(self._room.view[:nbytes])
        if self._kept and self._out.get_write_buffer_size():
            self._room.view = memoryview(bytearray(ROOM))


async def join(one: ConnectionEnd, other: ConnectionEnd) -> None:
    """Copies both ways until both have ended; what neither side holds back passes unseen."""
    one.pass_to(other, _CopyingEnd(one, other), other.send)
    other.pass_to(one, _CopyingEnd(other, one), one.send)
    await one.over.wait()
    await other.over.wait()
