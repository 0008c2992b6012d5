"""A connection to an agent: one request at a time, its reply collected whole."""

from __future__ import annotations

import asyncio

from msgspec import Struct, field

from holdfast.http1.failures import UpstreamFailed
from holdfast.http1.heads import RawFields
from holdfast.http1.reply_parser import ReplyParser
from holdfast.http1.socket_stream import SocketStream

IDLE_S = 15.0
"""How long a connection is kept that nobody uses."""


class HttpReply(Struct):
    """What came back, as it came, also where it broke."""

    status: int | None = None
    headers: RawFields = ()
    chunks: list[bytes] = field(default_factory=list)
    heard: bool = False
    """A byte has come."""
    cut: bool = False
    """There was more than the limit."""
    late: bool = False
    """Its time was over before it was whole."""
    failure: UpstreamFailed | None = None

    @property
    def unheard(self) -> bool:
        """The connection ended before any byte of a reply came."""
        return not self.heard and self.failure is not None and self.failure.kind == "closed"

    @property
    def body(self) -> bytes:
        return self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)


class AgentConnection(SocketStream):
    """A connection, once `connect` has returned. It ends by itself when it was idle for long."""

    def __init__(self, body_limit: int) -> None:
        super().__init__()
        self.into = self._received
        self._limit = body_limit
        self._left = 0
        self._replies = ReplyParser(self, lenient=True)
        self._reply = HttpReply()
        self._whole: asyncio.Future[None] | None = None
        self._failure: UpstreamFailed | None = None
        self._reusable = False
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def reusable(self) -> bool:
        """It can carry another request."""
        return self._reusable and not self.gone

    async def ask(self, method: str, request: bytes, deadline: float) -> HttpReply:
        """Sends a request; what came back until `deadline`, a time of the loop's clock."""
        self._reusable = False
        reply = self._reply = HttpReply()
        if self.gone:
            reply.failure = self._failure or UpstreamFailed("closed", "the connection was closed at once")
            return reply
        self._left = self._limit
        whole = self._whole = self.loop.create_future()
        self._replies.expect(method)
        self._within(deadline)
        self.send(request)
        try:
            await whole
        except BaseException:
            self.abort()
            raise
        return reply

    # -- what the parser of replies tells -------------------------------------------------------
    def begun(self, status: int, reason: str, headers: RawFields, length: int | None) -> None:
        self._reply.status, self._reply.headers = status, headers

    def received(self, data: bytes) -> None:
        left = self._left
        if left < 0:
            return
        self._left = left - len(data)
        if len(data) <= left:
            self._reply.chunks.append(data)
        else:
            self._reply.chunks.append(data[:left])
            self._reply.cut = True
            self._end()

    def done(self, reusable: bool) -> None:
        if self._whole is None or not reusable:
            self._end()
        else:
            self._reusable = True
            self._within(self.loop.time() + IDLE_S)
            self._tell()

    def broken(self, failure: Exception) -> None:
        assert isinstance(failure, UpstreamFailed)
        self._failure = failure
        if self._whole is not None:
            self._reply.failure = failure
        self._end()

    # -- inside ---------------------------------------------------------------------------------
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()
        self._replies.lost(clean=exc is None)

    def _received(self, data: bytes) -> None:
        self._reply.heard = True
        self._replies.feed(data)

    def _end(self) -> None:
        self._tell()
        self.abort()

    def _tell(self) -> None:
        whole, self._whole = self._whole, None
        if whole is not None and not whole.done():
            whole.set_result(None)

    def _within(self, deadline: float) -> None:
        """Something is to happen by then. The timer is only moved forward: requests come and go without touching it."""
        self._deadline = deadline
        if self._timer is None or self._timer.when() > deadline:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self.loop.call_at(deadline, self._look)

    def _look(self) -> None:
        if self.loop.time() < self._deadline:
            self._timer = self.loop.call_at(self._deadline, self._look)
            return
        if self._whole is not None:
            self._reply.late = True
        self._end()
