"""Lines from a relay, each marked by who wrote it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from holdfast.planes.mcp.relay import LINE_LIMIT


class RelayConnection(Protocol):
    """A connection of bytes: the Tunnel behind a CONNECT."""

    async def read(self) -> bytes:
        """What has come; empty at the end."""
        ...

    async def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


async def frames(connection: RelayConnection) -> AsyncIterator[tuple[bytes, bytes]]:
    """Every whole line as (mark, rest). A line without end raises ConnectionError."""
    partial = bytearray()
    while data := await connection.read():
        if b"\n" not in data:
            partial += data
            if len(partial) > 2 * LINE_LIMIT:
                raise ConnectionError("a line without end")
            continue
        *whole, left = (bytes(partial) + data).split(b"\n")
        partial[:] = left
        for one in whole:
            yield one[:1], one[1:]
