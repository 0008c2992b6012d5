"""A request and its reply, as a plane handles them, and the tunnel that a connection becomes when it leaves HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from holdfast.http1.heads import (
    BadRequest,
    BodyFraming,
    Fields,
    RequestHead,
    build_frame,
    build_switch_head,
    read_body_framing,
)
from holdfast.http1.listener import ClientConnection
from holdfast.streams.socket_stream import UPGRADE, BodyBuffer


class Tunnel:
    """A connection after an accepted CONNECT. `early` holds what the client had already sent."""

    def __init__(self, connection: ClientConnection, early: bytes) -> None:
        self.connection = connection
        self._inflow = BodyBuffer(connection)
        if early:
            self._inflow.feed(early)
        connection.on_data, connection.on_lost = self._inflow.feed, self._inflow.end

    async def read(self) -> bytes:
        """Return the next bytes, at least one; b"" when the client has left."""
        self.connection.release(UPGRADE)
        return await self._inflow.get()

    async def peek(self) -> bytes:
        """Return the client's first bytes, which stay to be read; b"" when it has left."""
        first = await self.read()
        self.connection.hold(UPGRADE)
        if first:
            first += self.take_early()
            self._inflow.feed(first)
        return first

    async def write(self, data: bytes) -> None:
        """Send, and wait while the client does not read; raise ConnectionResetError once it is gone."""
        await self.connection.write(data)

    def close(self) -> None:
        """Close after sending what was written."""
        self.connection.close()

    def take_early(self) -> bytes:
        """Return, once, the bytes that arrived before anything was read here."""
        return self._inflow.read_available()


SPARE = 262_144
"""An unread body up to this size is read and dropped to keep the connection; for a larger one it is closed."""

_UNSENT, _OPEN, _DONE = range(3)


class Exchange:
    """One request, to be answered once: by `respond`, by `start`, `write` and `finish`, or by `break_connection`."""

    def __init__(
        self,
        connection: ClientConnection,
        head: RequestHead,
        *,
        version: str,
        keep_alive: bool,
        upgrade: bool,
    ) -> None:
        self.connection = connection
        self.head = head
        self.inflow = BodyBuffer(connection)
        self.keep_alive = keep_alive
        """Whether the connection serves another request after this one."""
        self.upgrade = upgrade
        """CONNECT or `Upgrade`: until it is answered, the meaning of the bytes after the head is unknown."""
        self._modern = version == "1.1"
        self._body_framing: BodyFraming | None = None
        self._continued = False
        """Whether a client that waits for `100 Continue` has received it."""
        self._body: bytes | None = None
        self._phase = _UNSENT
        self._pending = b""
        self._chunked = False
        self._silent = False
        self._unsent: int | None = None

    # -- the request ----------------------------------------------------------------------------
    @property
    def body_framing(self) -> BodyFraming:
        """The body framing in the head. Most requests are read without it."""
        if self._body_framing is None:
            self._body_framing = read_body_framing(self.head.headers)
        return self._body_framing

    async def read_body(self, limit: int = 64_000_000) -> bytes:
        """Return the complete body. A longer one is answered with 413 and raises BadRequest."""
        if self._body is not None:
            return self._body
        declared = 0 if self.inflow.ended else self.body_framing.length or 0
        if declared > limit:
            raise BadRequest(413, f"a body of {declared} bytes; at most {limit} are read")
        self._request_body()
        body = await self.inflow.read_all(limit)
        if body is None:
            raise BadRequest(413, f"a body of more than {limit} bytes")
        self._body = body
        return body

    async def stream_body(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives. Raises ConnectionResetError if the client leaves in the middle of it."""
        self._request_body()
        while data := await self.inflow.get():
            yield data

    # -- the reply ------------------------------------------------------------------------------
    @property
    def is_answered(self) -> bool:
        """Whether the head of a reply was set."""
        return self._phase != _UNSENT

    @property
    def is_finished(self) -> bool:
        """Whether the reply is complete."""
        return self._phase == _DONE

    @property
    def is_delivered(self) -> bool:
        """Whether everything announced of the reply was sent."""
        return self._phase == _DONE or (self._phase == _OPEN and self._unsent == 0)

    async def wait(self, ms: float) -> None:
        """Wait, but not longer than the client does: raises ConnectionResetError once it is gone."""
        if ms <= 0:
            return
        try:
            async with asyncio.timeout(ms / 1000):
                await self.connection.wait_until_left()
        except TimeoutError:
            return
        raise ConnectionResetError("the client gave up waiting")

    def ensure_connected(self) -> None:
        """Raise ConnectionResetError if the client has closed the connection.

        Call it before sending a fault's effect.
        """
        if self.connection.has_left:
            self.connection.abort()
            raise ConnectionResetError("the client had disconnected")

    async def respond(self, status: int, headers: Fields = (), body: bytes = b"", *, reason: str | None = None) -> None:
        """Send a complete reply."""
        self._begin(status, headers, len(body), reason)
        self._phase = _DONE
        head, self._pending = self._pending, b""
        self.connection.send(head if self._silent else head + body)
        if self.connection.is_choked:
            await self.connection.drain()

    async def start(
        self, status: int, headers: Fields = (), length: int | None = None, *, reason: str | None = None
    ) -> None:
        """Begin a reply, chunked unless its length is given."""
        self._begin(status, headers, length, reason)
        self.connection.loop.call_soon(self._flush)

    async def write(self, data: bytes) -> None:
        """Send a part of the body, and wait while the client does not read."""
        connection = self.connection
        if connection.is_gone:
            raise ConnectionResetError("the client has disconnected")
        if self._phase != _OPEN:
            raise RuntimeError("no reply is open")
        if not data or self._silent:
            return
        if self._unsent is not None:
            self._unsent -= len(data)
            if self._unsent < 0:
                raise ValueError(f"{-self._unsent} bytes more than the declared length")
        head, self._pending = self._pending, b""
        connection.send(b"%b%x\r\n%b\r\n" % (head, len(data), data) if self._chunked else head + data)
        if connection.is_choked:
            await connection.drain()

    async def finish(self) -> None:
        """End the reply."""
        if self.connection.is_gone:
            raise ConnectionResetError("the client has disconnected")
        if self._phase != _OPEN:
            raise RuntimeError("no reply is open")
        if self._unsent and not self._silent:
            raise ValueError(f"{self._unsent} bytes less than the declared length")
        self._phase = _DONE
        tail = b"0\r\n\r\n" if self._chunked and not self._silent else b""
        head, self._pending = self._pending, b""
        if head or tail:
            self.connection.send(head + tail)

    def break_connection(self, reset: bool = False) -> None:
        """Break the TCP connection immediately, wherever the reply is; `reset` sends RST."""
        self._flush()
        self._phase = _DONE
        self.keep_alive = False
        self.connection.break_connection(reset=reset)

    async def take_over(self) -> Tunnel:
        """Return the connection itself, for CONNECT (or `Upgrade`); answer 200 if nothing was answered yet."""
        if not self.upgrade:
            raise RuntimeError("only a CONNECT or an Upgrade can be taken over")
        if self._phase == _UNSENT:
            await self.respond(200)
        self._flush()
        self._phase = _DONE
        return Tunnel(self.connection, self.connection.requests.hand_over())

    # -- inside ---------------------------------------------------------------------------------
    def _begin(self, status: int, headers: Fields, length: int | None, reason: str | None = None) -> None:
        """Create the head of the reply, which is sent with the next data."""
        if self._phase != _UNSENT:
            raise RuntimeError("a reply has already begun")
        if self.connection.is_gone:
            raise ConnectionResetError("the client has disconnected")
        method = self.head.method
        if self.upgrade and (status == 101 or (method == "CONNECT" and 200 <= status < 300)):
            self._pending, self._silent, self._phase = build_switch_head(status, headers), True, _OPEN
            return
        if self.upgrade:
            self._stay_in_http()
        # The reply begins while the request is not read to its end. If the rest is large, or the client waits to be
        # asked for it, reading it only to keep the connection is not worth it: it ends with this reply.
        if not self.inflow.ended and (self._expects_continue() or (self.body_framing.length or 0) > SPARE):
            self.keep_alive = False
        frame = build_frame(
            status, headers, length, method=method, modern=self._modern, keep_alive=self.keep_alive, reason=reason
        )
        self._pending, self._silent, self._chunked = frame.head, frame.silent, frame.chunked
        self.keep_alive, self._unsent, self._phase = frame.keep_alive, length, _OPEN

    def _request_body(self) -> None:
        """Send `100 Continue` to a client that waits for it, because the handler wants the body."""
        if self.upgrade:
            self._stay_in_http()
        if self._phase == _UNSENT and not self.inflow.ended and not self.inflow.waiting and self._expects_continue():
            self._continued = True
            self.connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _expects_continue(self) -> bool:
        """Return whether the client waits for `100 Continue` before it sends its body."""
        return self._modern and not self._continued and self.body_framing.awaited

    def _flush(self) -> None:
        head, self._pending = self._pending, b""
        if head and not self.connection.is_gone:
            self.connection.send(head)

    def _stay_in_http(self) -> None:
        """Stay with HTTP if the request offered another protocol."""
        self.upgrade = False
        self.connection.requests.stay_in_http(self.head)
