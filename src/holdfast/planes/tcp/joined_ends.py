"""Two ends of a carried connection joined: what comes at one goes out at the other, in the callback that brought it."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from socket import SO_RCVBUF, SOL_SOCKET
from typing import Protocol

from holdfast.planes.tcp.connection_end import ConnectionEnd

ROOM = 1 << 20
"""Bytes that are read at a time: a large transfer needs three quarters of the CPU that it needs with 256 kB."""


class Tap(Protocol):
    """Hears what passes between a client and its server, and changes nothing."""

    def client_said(self, data: bytes) -> None: ...

    def server_said(self, data: bytes) -> None: ...

    def server_ended(self) -> None:
        """Nothing more comes from there; may be told again."""
        ...


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


class _TappedEnd(_Joined, asyncio.Protocol):
    """Passes bytes on, then shows them. `ended` hears that no more come; `broke` of what `show` raises."""

    def __init__(
        self,
        end: ConnectionEnd,
        other: ConnectionEnd,
        show: Callable[[bytes], None],
        ended: Callable[[], None],
        broke: Callable[[Exception], None],
    ) -> None:
        super().__init__(end, other)
        self._show = show
        self._ended = ended
        self._broke = broke

    def data_received(self, data: bytes) -> None:
        self._out.write(data)
        try:
            self._show(data)
        except Exception as failure:  # asyncio would log it and end the connection
            self._broke(failure)

    def eof_received(self) -> bool:
        self._ended()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended()
        super().connection_lost(exc)


async def join(one: ConnectionEnd, other: ConnectionEnd) -> None:
    """Copies both ways until both have ended; what neither side holds back passes unseen."""
    one.pass_to(other, _CopyingEnd(one, other), other.send)
    other.pass_to(one, _CopyingEnd(other, one), one.send)
    await one.over.wait()
    await other.over.wait()


async def join_tapped(client: ConnectionEnd, server: ConnectionEnd, tap: Tap) -> None:
    """The same, and shows the tap what passes; what that raises ends both, and is raised."""
    broken: list[Exception] = []

    def broke(failure: Exception) -> None:
        broken.append(failure)
        client.abort()
        server.abort()

    from_client = _TappedEnd(client, server, tap.client_said, _nothing, broke)
    from_server = _TappedEnd(server, client, tap.server_said, tap.server_ended, broke)
    client.pass_to(server, from_client, from_client.data_received)
    server.pass_to(client, from_server, from_server.data_received)
    try:
        await client.over.wait()
        await server.over.wait()
    finally:
        tap.server_ended()
    if broken:
        raise broken[0]


def _nothing() -> None:
    """Only the server's end says something of transactions."""
