"""A body on its way in: kept until it is taken, and the connection not read while too much is waiting."""

from __future__ import annotations

import asyncio

from holdfast.streams.socket_stream import BODY, SocketStream

HIGH = 262_144


class BodyBuffer:
    """Bytes in, bytes out, in order; one taker at a time."""

    __slots__ = ("_failure", "_held", "_parts", "_size", "_waiter", "_wire", "ended")

    def __init__(self, wire: SocketStream) -> None:
        self.ended = False
        """The last byte has come; it may still be waiting here."""
        self._wire: SocketStream | None = wire
        self._parts: list[bytes] = []
        self._size = 0
        self._held = False
        """The connection is not read because of what waits here."""
        self._failure: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def waiting(self) -> int:
        """How many bytes are here and not yet taken."""
        return self._size

    def feed(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        if self._size > HIGH and self._wire is not None:
            self._held = True
            self._wire.hold(BODY)
        if self._waiter is not None:
            self._wake()

    def end(self) -> None:
        """That was all: the connection is free for what comes next."""
        self.ended = True
        self._detach()

    def fail(self, failure: Exception) -> None:
        """There will be no more; raised once everything that came has been taken. Nothing after an end."""
        if not self.ended and self._failure is None:
            self._failure = failure
            self._detach()

    async def get(self) -> bytes:
        """All that has come since the last time, at least a byte; b"" at the end."""
        while not self._parts:
            if self._failure is not None:
                raise self._failure
            if self.ended:
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self.take()

    def take(self) -> bytes:
        """All that is here, without waiting."""
        parts = self._parts
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self._size = 0
        if self._held:
            self._release()
        return data

    def _detach(self) -> None:
        if self._held:
            self._release()
        self._wire = None
        if self._waiter is not None:
            self._wake()

    def _release(self) -> None:
        self._held = False
        if self._wire is not None:
            self._wire.release(BODY)

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
