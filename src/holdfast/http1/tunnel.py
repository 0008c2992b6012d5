"""A connection that HTTP has left: bytes both ways."""

from __future__ import annotations

from holdfast.http1.listener import ClientConnection
from holdfast.streams.socket_stream import UPGRADE, BodyBuffer


class Tunnel:
    """What is left of a connection after CONNECT was accepted. `early` is what the client had sent ahead."""

    def __init__(self, connection: ClientConnection, early: bytes) -> None:
        self.connection = connection
        self._early = early
        self._inflow: BodyBuffer | None = None

    @property
    def read_from(self) -> bool:
        """Somebody has begun to read here."""
        return self._inflow is not None

    async def read(self) -> bytes:
        """What has come, at least a byte; b"" when the client has left."""
        if self._inflow is None:
            self._inflow = BodyBuffer(self.connection)
            if early := self.early():
                self._inflow.feed(early)
            self.connection.on_data = self._inflow.feed
            self.connection.on_lost = self._inflow.end
            self.connection.release(UPGRADE)
        return await self._inflow.get()

    async def peek(self) -> bytes:
        """The first that the client says, which stays to be read; b"" when it has left."""
        if not self._early and self._inflow is None:
            inflow, connection = BodyBuffer(self.connection), self.connection
            connection.on_data, connection.on_lost = inflow.feed, inflow.end
            connection.release(UPGRADE)
            self._early = await inflow.get()
            connection.hold(UPGRADE)
            if inflow.waiting:
                self._early += inflow.take()
        return self._early

    async def write(self, data: bytes) -> None:
        """Sends, and waits while the client does not read; ConnectionResetError once it is gone."""
        if self.connection.gone:
            raise ConnectionResetError("the client is gone")
        self.connection.send(data)
        await self.connection.drain()

    def close(self) -> None:
        """Closes after what was written has left."""
        self.connection.close()

    def abort(self) -> None:
        """Closes at once."""
        self.connection.abort()

    def early(self) -> bytes:
        """What came before anybody read here; given once."""
        early, self._early = self._early, b""
        return early
