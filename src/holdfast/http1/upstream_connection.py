"""The client side of a connection: one request at a time, with its reply read as it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

from msgspec import Struct

from holdfast.http1.heads import RawFields, find_header
from holdfast.http1.outgoing_request import OutgoingRequest
from holdfast.http1.reply_parser import ReplyParser
from holdfast.streams.socket_stream import BodyBuffer, SocketStream
from holdfast.streams.sockets import UpstreamFailed

ConnectionKey: TypeAlias = tuple[str, str, int, str]
"""Scheme, host, port and address: requests share a connection only if all of these are equal."""

_JOINED = 65_536
"""Maximum size of a body that is sent together with the head; a longer one is not copied for that."""


class UpstreamConnection(SocketStream):
    """A connection to an upstream server."""

    def __init__(self, pool: ConnectionPool, key: ConnectionKey) -> None:
        super().__init__()
        self.key = key
        self.has_received = False
        """Whether anything has arrived since the last request."""
        self.on_data = self._on_data
        self._pool = pool
        self._replies = ReplyParser(self, lenient=pool.lenient)
        self._answer: asyncio.Future[UpstreamReply] | None = None
        self._incoming: UpstreamReply | None = None
        self._sending: asyncio.Task[None] | None = None
        self._read_s = self._deadline = 0.0
        self._limited = False
        """Whether the deadline is for the complete reply, rather than for its next byte."""
        self._timer: asyncio.TimerHandle | None = None

    # -- one request ----------------------------------------------------------------------------
    async def send_request(self, request: OutgoingRequest, read_s: float, *, in_all: bool = False) -> UpstreamReply:
        """Send a request; return its reply when the head is there. Raises UpstreamFailed.

        `read_s` is how long the server may be silent, or with `in_all` how long the complete reply may take.
        """
        answer: asyncio.Future[UpstreamReply] = self.loop.create_future()
        self._answer = answer
        self.has_received, self._read_s, self._limited = False, read_s, in_all
        self._replies.expect(request.method)
        self._set_deadline(read_s)
        if request.stream is None:
            if len(request.body) < _JOINED:
                self.send(request.head + request.body)
            else:
                self.send(request.head)
                self.send(request.body)
        else:
            self._sending = self.loop.create_task(self._send_stream(request))
        try:
            return await answer
        except BaseException:
            self.give_up()
            raise

    async def _send_stream(self, request: OutgoingRequest) -> None:
        assert request.stream is not None
        try:
            self.send(request.head)
            async for data in request.frame_stream():
                if self.is_gone:
                    return
                self.send(data)
                self._deadline = self.loop.time() + self._read_s
                await self.drain()
            self._sending = None
        except Exception as error:
            self._sending = None
            self.on_reply_failure(error)

    def give_up(self) -> None:
        """End the connection, whatever its state."""
        self.on_reply_failure(UpstreamFailed("closed", "the reply was abandoned"))

    async def wait_closed(self) -> None:
        """Wait until the connection is completely closed."""
        await self.over.wait()
        if self._sending is not None:
            await asyncio.wait({self._sending})

    # -- called by the parser of replies --------------------------------------------------------
    def on_reply_head(self, status: int, reason: str, headers: RawFields, length: int | None) -> None:
        answer, self._answer = self._answer, None
        incoming = UpstreamReply(status, reason, headers, BodyBuffer(self), length, self._abandon)
        self._incoming = incoming
        if answer is not None and not answer.done():
            answer.set_result(incoming)

    def on_reply_body(self, data: bytes) -> None:
        if self._incoming is not None:
            self._incoming.inflow.feed(data)

    def on_reply_end(self, reusable: bool) -> None:
        incoming, self._incoming = self._incoming, None
        if incoming is not None:
            incoming.inflow.end()
        # A server may answer before it has read the whole request. The connection is then in the middle of a body that
        # nobody will finish, and cannot serve another request.
        if reusable and self._sending is None:  # if it is closed by now, it is not returned to the pool
            self._set_deadline(self._pool.idle_s)
            self._pool.give_back(self)
        else:
            self._stop_sending()
            self.abort()

    def on_reply_failure(self, failure: Exception) -> None:
        self._pool.remove_idle(self)
        answer, self._answer = self._answer, None
        incoming, self._incoming = self._incoming, None
        if answer is not None and not answer.done():
            answer.set_exception(failure)
        if incoming is not None:
            incoming.inflow.fail(failure)
        self._stop_sending()
        self.abort()

    # -- inside ---------------------------------------------------------------------------------
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._pool.forget(self)
        if self._timer is not None:
            self._timer.cancel()
        self._replies.on_disconnect(clean=exc is None)

    def _on_data(self, data: bytes) -> None:
        self.has_received = True
        if not self._limited:
            self._deadline = self.loop.time() + self._read_s
        self._replies.feed(data)

    def _abandon(self, incoming: UpstreamReply) -> None:
        if incoming is self._incoming:
            self.give_up()

    def _stop_sending(self) -> None:
        if self._sending is not None:
            self._sending.cancel()

    def _set_deadline(self, seconds: float) -> None:
        """Set a deadline. The timer only moves forward, so most requests do not touch it."""
        self._deadline = self.loop.time() + seconds
        if self._timer is None or self._timer.when() > self._deadline:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self.loop.call_at(self._deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        now = self.loop.time()
        if self.holds and not self._limited:  # the receiver of the reply is slow, not the server
            self._deadline = now + self._read_s
        if now >= self._deadline:
            self.on_reply_failure(UpstreamFailed("timeout", f"no data arrived for {self._read_s:g} s"))
        else:
            soon = min(self._deadline, now + self._pool.idle_s)
            self._timer = self.loop.call_at(soon, self._check_deadline)


class ConnectionPool:
    """The connections of one client: those in use, and idle ones that another request may use."""

    def __init__(self, idle_s: float, max_idle: int, *, lenient: bool) -> None:
        self.idle_s = idle_s
        """How long an idle connection is kept."""
        self.lenient = lenient
        self._max_idle = max_idle
        self._idle: dict[ConnectionKey, list[UpstreamConnection]] = {}
        self._open: set[UpstreamConnection] = set()
        self.is_closed = False

    def add(self, connection: UpstreamConnection) -> None:
        """Add a connection that is in use. Raises UpstreamFailed if it was closed in the meantime."""
        if self.is_closed or connection.lost:
            connection.abort()
            raise UpstreamFailed("closed", "the connection was closed immediately")
        self._open.add(connection)

    def pop(self, key: ConnectionKey) -> UpstreamConnection | None:
        """Take out an idle connection; None if there is none."""
        idle = self._idle.get(key, [])
        while idle:
            connection = idle.pop()
            if not connection.is_gone:
                return connection
        return None

    def give_back(self, connection: UpstreamConnection) -> None:
        """Put a free connection back."""
        idle = self._idle.setdefault(connection.key, [])
        if self.is_closed or len(idle) >= self._max_idle:
            connection.abort()
        else:
            idle.append(connection)

    def remove_idle(self, connection: UpstreamConnection) -> None:
        """Remove a connection that cannot be reused."""
        idle = self._idle.get(connection.key, [])
        if connection in idle:
            idle.remove(connection)
        if not idle:
            self._idle.pop(connection.key, None)

    def forget(self, connection: UpstreamConnection) -> None:
        """Forget a connection that is closed."""
        self.remove_idle(connection)
        self._open.discard(connection)

    async def close(self) -> None:
        """Close every connection, including those in use."""
        self.is_closed = True
        connections = list(self._open)
        for connection in connections:
            connection.give_up()
        for connection in connections:
            await connection.wait_closed()


class UpstreamReply(Struct, eq=False):
    """A reply, available as soon as its head is. Read it to the end, or `abort` it: its connection waits for that."""

    status: int
    reason: str
    headers: RawFields
    inflow: BodyBuffer
    length: int | None
    """The declared length; None if the body is chunked or ends with the connection."""
    _abort: Callable[[UpstreamReply], None]

    def get(self, name: str) -> str | None:
        """Return the first header with that name, in any case."""
        return find_header(self.headers, name)

    async def stream_body(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, undecoded. Raises UpstreamFailed if it ends early; stopping early aborts."""
        try:
            while data := await self.inflow.get():
                yield data
        finally:
            self.abort()

    async def read(self, limit: int = 64_000_000) -> bytes:
        """Return the complete body; a longer one raises UpstreamFailed and aborts."""
        try:
            body = await self.inflow.read_all(limit)
        finally:
            self.abort()
        if body is None:
            raise UpstreamFailed("protocol", f"a reply of more than {limit} bytes")
        return body

    def abort(self) -> None:
        """Abandon the rest of the reply together with the connection; does nothing if all has arrived."""
        if not self.inflow.ended:
            self._abort(self)
