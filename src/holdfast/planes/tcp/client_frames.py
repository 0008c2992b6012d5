"""Bytes taken message by message: short ones whole, of long ones the beginning."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

LIMIT = 1_000_000
"""Bytes of a message that are looked at; the rest of it passes unseen."""


class ClientFrames:
    """What a client sends, as much at a time as its protocol says. `idle` is awaited before waiting for more."""

    def __init__(self, read: Callable[[], Awaitable[bytes]], idle: Callable[[], Awaitable[None]]) -> None:
        self._read = read
        self._idle = idle
        self._data = bytearray()
        self._at = 0

    async def exactly(self, size: int) -> bytes:
        """So many bytes; fewer only if nothing more comes."""
        while len(self._data) - self._at < size:
            if not await self._more():
                break
        taken = bytes(self._data[self._at : self._at + size])
        self._at += len(taken)
        return taken

    async def some(self, most: int) -> bytes:
        """What is there, at most so much; b"" if nothing more comes."""
        if self._at == len(self._data) and not await self._more():
            return b""
        return await self.exactly(min(most, len(self._data) - self._at))

    async def _more(self) -> bool:
        await self._idle()
        data = await self._read()
        del self._data[: self._at]
        self._at = 0
        self._data += data
        return bool(data)
