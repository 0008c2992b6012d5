"""A connection that has left HTTP: bytes in both directions."""

from __future__ import annotations

from holdfast.http1.listener import ClientConnection
from holdfast.streams.socket_stream import UPGRADE, BodyBuffer


class Tunnel:
    """A connection after an accepted CONNECT. `early` holds what the client had already sent."""

    def __init__(self, connection: ClientConnection, early: bytes) -> None:
        self.connection = connection
        self._early = early
        self._inflow: BodyBuffer | None = None

    @property
    def has_read(self) -> bool:
        """Whether reading has begun here."""
        return self._inflow is not None

    async def read(self) -> bytes:
        """Return the next bytes, at least one; b"" when the client has left."""
        if self._inflow is None:
            self._inflow = BodyBuffer(self.connection)
            if early := self.take_early():
                self._inflow.feed(early)
            self.connection.on_data = self._inflow.feed
            self.connection.on_lost = self._inflow.end
            self.connection.release(UPGRADE)
        return await self._inflow.get()

    async def peek(self) -> bytes:
        """Return the client's first bytes, which stay to be read; b"" when it has left."""
        if not self._early and self._inflow is None:
            inflow, connection = BodyBuffer(self.connection), self.connection
            connection.on_data, connection.on_lost = inflow.feed, inflow.end
            connection.release(UPGRADE)
            self._early = await inflow.get()
            connection.hold(UPGRADE)
            if inflow.waiting:
                self._early += inflow.read_available()
        return self._early

    async def write(self, data: bytes) -> None:
        """Send, and wait while the client does not read; raise ConnectionResetError once it is gone."""
        await self.connection.write(data)

    def close(self) -> None:
        """Close after sending what was written."""
        self.connection.close()

    def abort(self) -> None:
        """Close immediately."""
        self.connection.abort()

    def take_early(self) -> bytes:
        """Return, once, the bytes that arrived before anything was read here."""
        early, self._early = self._early, b""
        return early
