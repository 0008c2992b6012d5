"""A MessageBatch forwards a client's messages to the server; short ones are sent together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from holdfast.planes.tcp.sinks import ByteSink

LIMIT = 1_000_000
"""Bytes of a message that are examined; the rest passes unread."""


class ClientFrames:
    """Reads a client's data in the sizes that its protocol needs. `idle` is awaited before waiting for more."""

    def __init__(self, read: Callable[[], Awaitable[bytes]], idle: Callable[[], Awaitable[None]]) -> None:
        self._read = read
        self._idle = idle
        self._data = bytearray()
        self._at = 0

    async def read_exactly(self, size: int) -> bytes:
        """Return this many bytes, or fewer at the end of the input."""
        while len(self._data) - self._at < size:
            if not await self._read_more():
                break
        data = bytes(self._data[self._at : self._at + size])
        self._at += len(data)
        return data

    async def read_some(self, most: int) -> bytes:
        """Return the available bytes, up to this many; b"" at the end of the input."""
        if self._at == len(self._data) and not await self._read_more():
            return b""
        return await self.read_exactly(min(most, len(self._data) - self._at))

    def take_rest(self) -> bytes:
        """Return the bytes that were read from the client but not consumed."""
        data, self._data, self._at = bytes(self._data[self._at :]), bytearray(), 0
        return data

    async def _read_more(self) -> bool:
        await self._idle()
        data = await self._read()
        del self._data[: self._at]
        self._at = 0
        self._data += data
        return bool(data)


class MessageBatch:
    """Takes messages with `frames` and sends them with `put`; everything is sent before the next wait."""

    def __init__(self, read: Callable[[], Awaitable[bytes]], sink: ByteSink) -> None:
        self.frames = ClientFrames(read, self.flush)
        self._sink = sink
        self._out: list[bytes] = []

    def put(self, data: bytes) -> None:
        self._out.append(data)

    async def flush(self) -> None:
        data, self._out = b"".join(self._out), []
        if data:
            await self._sink.write(data)

    async def send(self, data: bytes, rest: int) -> None:
        """Forward a message with this many bytes not read yet."""
        self.put(data)
        while rest and (more := await self.frames.read_some(min(rest, LIMIT))):
            rest -= len(more)
            self.put(more)

    async def skip(self, rest: int) -> None:
        """Drop the rest of a message."""
        while rest and (data := await self.frames.read_some(min(rest, LIMIT))):
            rest -= len(data)

    async def pass_all(self) -> None:
        """Pass everything on unread."""
        while data := await self.frames.read_some(LIMIT):
            self.put(data)

    async def finish(self) -> None:
        await self.flush()
        await self._sink.finish()
