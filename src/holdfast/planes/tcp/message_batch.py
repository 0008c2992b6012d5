"""A MessageBatch: the way of a client's messages to the server; short ones leave together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from holdfast.planes.tcp.client_frames import LIMIT, ClientFrames
from holdfast.planes.tcp.sinks import ByteSink


class MessageBatch:
    """Messages in by `frames`, out by `put`; what was put leaves before the next wait."""

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
        """Puts a message of which so many bytes have not been read yet."""
        self.put(data)
        while rest and (more := await self.frames.some(min(rest, LIMIT))):
            rest -= len(more)
            self.put(more)

    async def skip(self, rest: int) -> None:
        """Drops the rest of a message."""
        while rest and (data := await self.frames.some(min(rest, LIMIT))):
            rest -= len(data)

    async def pass_all(self) -> None:
        """Passes on whatever comes, unread."""
        while data := await self.frames.some(LIMIT):
            self.put(data)

    async def finish(self) -> None:
        await self.flush()
        await self._sink.finish()
