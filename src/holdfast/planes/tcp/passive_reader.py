"""Reads a database connection without waiting faults, after its bytes have been passed on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from holdfast.streams.connection_end import ConnectionEnd


class PassiveReader:
    """Reads a connection without waiting faults: bytes are forwarded first, in the call that delivered them.

    Reading in tasks would take each message through two more rounds of the event loop, 0.1 ms per query.
    """

    def __init__(
        self,
        client: ConnectionEnd,
        server: ConnectionEnd,
        read: Callable[[bytes], None],
        scan: Callable[[bytes], bytes],
        frame: Callable[[bytes], tuple[int, int]],
    ) -> None:
        """`read` gets each client message, `scan` the server's bytes; `frame` returns the length of a message."""
        self._client = client
        self._server = server
        self._read = read
        self._scan = scan
        self._frame = frame
        self._partial = b""
        self._unread = 0
        """Remaining bytes of a long message, which pass unread."""
        self._failure: Exception | None = None

    async def run(self, early: bytes) -> None:
        """Run until both sides have ended; raise the exception of a failed read. `early` holds bytes already
        read from the client."""
        client, server = self._client, self._server
        if early:
            self._run_guarded(self._handle_client_data, early)
        client.join_to(server, partial(self._run_guarded, self._handle_client_data))
        server.join_to(client, partial(self._run_guarded, self._handle_server_data))
        await client.over.wait()
        await server.over.wait()
        if self._failure is not None:
            raise self._failure

    def _run_guarded(self, take: Callable[[bytes], None], data: bytes) -> None:
        try:
            take(data)
        except Exception as failure:  # asyncio would only log it
            self._failure = self._failure or failure
            self._client.abort()
            self._server.abort()

    def _handle_server_data(self, data: bytes) -> None:
        if passed := self._scan(data):
            self._client.send(passed)

    def _handle_client_data(self, data: bytes) -> None:
        self._server.send(data)
        if self._partial:
            data, self._partial = self._partial + data, b""
        at = min(self._unread, len(data))
        self._unread -= at
        while at < len(data):
            size, wanted = self._frame(data[at : at + 16])
            if len(data) - at < wanted:
                self._partial = data[at:]
                return
            self._read(data[at : at + wanted])
            self._unread = max(0, at + size - len(data))
            at += size
