"""The requests of one connection: parsed as their bytes arrive, and answered one after another by one task."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from holdfast.http1.exchange import SPARE, Exchange
from holdfast.http1.heads import HEAD_LIMIT, BadRequest, RequestHead, build_frame, measure_fields
from holdfast.http1.listener import ClientConnection
from holdfast.streams.socket_stream import ALL, PIPELINE, UPGRADE, discard

PIPELINED = 256
"""Maximum number of pipelined requests; more are rejected."""

_BODY_FIELDS = frozenset((b"content-length", b"transfer-encoding"))
Serve: TypeAlias = Callable[[Exchange], Awaitable[None]]
"""Answers one request."""

LINGER_S = 1.0
"""How long a client may continue to send after its answer: closing earlier could destroy the answer in transit."""


class RequestLoop:
    """The requests of a client on one connection, and `serve`, which answers them.

    `feed` never raises: unparsable input becomes a BadRequest.
    """

    def __init__(self, serve: Serve, connection: ClientConnection) -> None:
        self.has_left_http = False
        """Whether HTTP has ended here, but the connection has not."""
        self._serve = serve
        self._connection = connection
        self._busy = False
        """Whether a request is being answered."""
        self._queue: deque[Exchange | BadRequest] = deque()
        self._arrived = asyncio.Event()
        self._receiving: Exchange | None = None
        self._replaying = False
        self._paused = False
        """Whether reading is paused because of waiting requests."""
        self._refused = False
        self._over = False
        self._rest = b""
        self._reset_parser()

    def _reset_parser(self) -> None:
        self._parser: HttpRequestParser | None = HttpRequestParser(self)
        self._target = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._unseen = 0  # bytes since the last parsed event: an incomplete head, or a trailer

    @property
    def is_idle(self) -> bool:
        """Whether it is between two requests."""
        return not (self._busy or self.has_left_http or self._queue or self._receiving or self._unseen)

    @property
    def has_due_reply(self) -> bool:
        """Whether a request is complete and its reply is not yet sent."""
        return not (self.is_idle or self.has_left_http or self._receiving or self._unseen)

    # -- answering ------------------------------------------------------------------------------
    async def run(self) -> None:
        """Answer until the client sends no more, then end the connection, unless it has become a tunnel."""
        clean = False
        try:
            while (entry := await self._receive_request()) is not None:
                self._busy = True
                if not await self._answer(entry):
                    break
                self._busy = False
            clean = True
        finally:
            if not self.has_left_http:
                self._connection.close() if clean else self._connection.abort()

    async def _receive_request(self) -> Exchange | BadRequest | None:
        """Return the next request; None when the client has disconnected."""
        while not self._queue:
            if self._over:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        if self._paused and len(self._queue) == 1:
            self._paused = False
            self._connection.release(PIPELINE)
        return self._queue.popleft()

    async def _answer(self, entry: Exchange | BadRequest) -> bool:
        """Answer a request; return whether the connection can serve another."""
        if isinstance(entry, BadRequest):
            await self._reject(entry)
            return False
        connection = self._connection
        try:
            await self._serve(entry)
            if not entry.is_finished and not connection.is_gone:
                raise RuntimeError(f"{entry.head.method} got an incomplete reply")
        except BadRequest as refused:
            await self._reject(refused, entry)
            return False
        except Exception as error:
            if not connection.is_gone:
                connection.owner.report_error(connection, entry.head.method, error)
            connection.abort()
            return False
        if self.has_left_http or connection.is_gone:
            return False
        if entry.keep_alive and (entry.inflow.ended or await _drain_request(entry)):
            return True
        if not entry.inflow.ended:  # otherwise closing could destroy the answer in transit
            await self._linger()
        return False

    async def _reject(self, refused: BadRequest, exchange: Exchange | None = None) -> None:
        """Report what is wrong with a request, unless an answer was begun, and end the connection."""
        connection = self._connection
        connection.owner.report_bad_request(connection, refused)
        if exchange is not None and exchange.is_answered:
            connection.abort()
        elif not connection.is_gone:
            text = f"{refused}\n".encode()
            headers = [("Content-Type", "text/plain; charset=utf-8")]
            frame = build_frame(refused.status, headers, len(text), method="GET", modern=True, keep_alive=False)
            connection.send(frame.head + text)
            await self._linger()

    async def _linger(self) -> None:
        """Close the sending side, then read and drop what the client still sends, for a moment."""
        # Closing a socket with unread data sends a reset, which can make the client lose an answer that is already in
        # its buffer. So only the sending side is closed, and what still arrives is read and dropped.
        connection = self._connection
        connection.on_data = discard
        connection.release(ALL)
        connection.end()
        try:
            async with asyncio.timeout(LINGER_S):
                await connection.over.wait()
        except TimeoutError:
            connection.abort()

    # -- parsing --------------------------------------------------------------------------------
    def on_disconnect(self) -> None:
        """Handle the end of the client: its incomplete request fails.

        Complete ones are still handled, as a server would.
        """
        self._over = True
        self._parser = None  # the two refer to each other
        if self._receiving is not None:
            self._receiving.inflow.fail(ConnectionResetError("the client disconnected in the middle of its request"))
        self._arrived.set()

    def feed(self, data: bytes) -> None:
        if self._parser is None or self._refused:
            return
        if self._rest or (self._receiving is not None and self._receiving.upgrade):
            self._rest += data  # reading is paused: this can only be data already in transit
            return
        self._unseen += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._rest = bytes(data[upgrade.args[0] :])
            self._connection.hold(UPGRADE)
        except HttpParserError:
            if not self._refused:
                self._refuse(400, "the request cannot be parsed")
        else:
            if self._unseen > HEAD_LIMIT:
                self._refuse(431, "a head that does not end")

    def stay_in_http(self, head: RequestHead) -> None:
        """Answer a request that offered to leave HTTP in HTTP: its body follows its head, then other requests."""
        # The parser has stopped at the offer, because everything after it might be another protocol. The request stays
        # HTTP, so a new parser reads on. If a body follows, the new parser must know its length: it is fed a small head
        # with the framing headers of the request, whose events are ignored.
        rest, self._rest = self._rest, b""
        self._reset_parser()
        framing = [field for field in head.headers if field[0].lower() in _BODY_FIELDS]
        if head.method == "CONNECT" or not framing:
            self.on_message_complete()
        else:
            self._replaying = True  # the parser skipped the body; it gets the head again, without the offer
            self.feed(b"POST / HTTP/1.1\r\n" + b"".join(b"%b: %b\r\n" % field for field in framing) + b"\r\n")
        if rest:
            self.feed(rest)
        self._connection.release(UPGRADE)

    def hand_over(self) -> bytes:
        """End HTTP here; return what the client has sent after its request. Nothing more is read until requested."""
        self.has_left_http = True
        if self._receiving is not None:
            self._receiving.inflow.end()
        self._receiving = self._parser = None
        rest, self._rest = self._rest, b""
        return rest

    # -- called by the parser -------------------------------------------------------------------
    def on_url(self, data: bytes) -> None:
        self._target += data

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._receiving is None:  # otherwise it is a trailer, which is ignored
            self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        parser, target, fields = self._parser, self._target, self._fields
        assert parser is not None
        self._target, self._fields = b"", []
        if self._unseen > HEAD_LIMIT and measure_fields(fields) + len(target) > HEAD_LIMIT:
            self._refuse(431, f"a head of more than {HEAD_LIMIT} bytes")
        if len(self._queue) >= PIPELINED:
            self._refuse(400, f"more than {PIPELINED} pipelined requests")
        self._unseen = 0
        if self._replaying:
            self._replaying = False
        elif not self._refused:
            self._receiving = exchange = Exchange(
                self._connection,
                RequestHead(parser.get_method().decode(), target.decode("latin-1"), tuple(fields)),
                version=parser.get_http_version(),
                keep_alive=parser.should_keep_alive(),
                upgrade=parser.should_upgrade(),
            )
            if self._queue:  # a pipelined request: read no more before the one ahead of it is answered
                self._paused = True
                self._connection.hold(PIPELINE)
            self._queue.append(exchange)
            self._arrived.set()

    def on_body(self, data: bytes) -> None:
        self._unseen = 0
        if self._receiving is not None:
            self._receiving.inflow.feed(data)

    def on_message_complete(self) -> None:
        self._unseen = 0
        exchange = self._receiving
        if exchange is not None and not exchange.upgrade:
            self._receiving = None
            exchange.inflow.end()

    def _refuse(self, status: int, message: str) -> None:
        self._refused = True
        refused = BadRequest(status, message)
        if self._receiving is not None:
            self._receiving.inflow.fail(refused)
        self._queue.append(refused)
        self._arrived.set()


async def _drain_request(exchange: Exchange) -> bool:
    """Read the unread rest of a request; return whether it was short and arrived soon."""
    spent = 0
    try:
        async with asyncio.timeout(LINGER_S):
            while data := await exchange.inflow.get():
                spent += len(data)
                if spent > SPARE:
                    return False
    except (TimeoutError, BadRequest, ConnectionResetError):
        return False
    return True
