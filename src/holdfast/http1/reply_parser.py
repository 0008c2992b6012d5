"""Parses replies from bytes, and collects one completely, even if it was cut off."""

from __future__ import annotations

from typing import Protocol

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from msgspec import Struct, field

from holdfast.http1.heads import HEAD_LIMIT, RawFields, measure_fields, read_body_framing
from holdfast.streams.sockets import UpstreamFailed


class ReplyListener(Protocol):
    """Receives parsed replies. `broken` may be called at any time, and is then the last call."""

    def on_reply_head(self, status: int, reason: str, headers: RawFields, length: int | None) -> None: ...

    def on_reply_body(self, data: bytes) -> None: ...

    def on_reply_end(self, reusable: bool) -> None: ...

    def on_reply_failure(self, failure: Exception) -> None: ...


class ReplyParser:
    """A server's answers on one connection. `feed` never raises: unparsable input is reported as broken."""

    def __init__(self, listener: ReplyListener, *, lenient: bool = False) -> None:
        """`lenient`: lines may end in LF alone, and headers may be invalid."""
        self._listener = listener
        self._lenient = lenient
        self._method: str | None = None  # methods of requests whose replies have not begun
        self._inside = False  # a body is being received
        self._until_close = False
        self._reusable = False
        self._reset_parser()

    def _reset_parser(self) -> None:
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        if self._lenient:
            self._parser.set_dangerous_leniencies(
                lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
            )
        self._fields: list[tuple[bytes, bytes]] = []
        self._reason = b""
        self._unseen = 0  # bytes since the last parsed event: an incomplete head, or a trailer

    def expect(self, method: str) -> None:
        """Record that a request was sent."""
        self._method = method

    def feed(self, data: bytes) -> None:
        if self._parser is None:
            return
        self._unseen += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._break(f"not an HTTP reply: {error}")
        else:
            if self._unseen > HEAD_LIMIT:
                self._break(f"a head of more than {HEAD_LIMIT} bytes")

    def on_disconnect(self, clean: bool) -> None:
        """Handle the end of the connection: it completes a reply without a length, and breaks any other."""
        if self._parser is None:
            return
        if self._inside and self._until_close and clean:
            self._parser = None
            self._listener.on_reply_end(False)
        elif self._inside:
            self._break("the connection was closed in the middle of the reply", closed=True)
        else:
            self._break("the connection was closed before a reply came", closed=True)

    # -- called by the parser -------------------------------------------------------------------
    def on_message_begin(self) -> None:
        if self._method is None:
            self._break("a reply without a request")

    def on_status(self, data: bytes) -> None:
        self._reason += data

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._inside:  # otherwise it is a trailer, which is ignored
            self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        fields, reason, method = tuple(self._fields), self._reason.decode("latin-1"), self._method
        self._fields, self._reason = [], b""
        if self._parser is None or method is None:
            return
        if self._unseen > HEAD_LIMIT and measure_fields(fields) > HEAD_LIMIT:
            self._break(f"a head of more than {HEAD_LIMIT} bytes")
            return
        self._unseen = 0
        status = self._parser.get_status_code()
        if status >= 200:
            self._begin(method, status, reason, fields)

    def on_body(self, data: bytes) -> None:
        self._unseen = 0
        if self._inside:
            self._listener.on_reply_body(data)
        else:
            self._break("a body where there is none")

    def on_message_complete(self) -> None:
        self._unseen = 0
        if self._inside and self._parser is not None:
            self._inside = False
            self._listener.on_reply_end(self._reusable)

    # -- inside ---------------------------------------------------------------------------------
    def _begin(self, method: str, status: int, reason: str, fields: RawFields) -> None:
        assert self._parser is not None
        length, chunked, _ = read_body_framing(fields)
        self._until_close = length is None and not chunked
        self._reusable = self._parser.should_keep_alive()
        self._method = None
        self._listener.on_reply_head(status, reason, fields, length)
        self._inside = method != "HEAD"
        if not self._inside:  # the parser cannot know this and would wait for a body: the next reply gets a new parser
            self._reset_parser()
            self._listener.on_reply_end(self._reusable)

    def _break(self, why: str, *, closed: bool = False) -> None:
        if self._parser is not None:
            self._parser = None
            self._listener.on_reply_failure(UpstreamFailed("closed" if closed else "protocol", why))


class CollectedReply(Struct):
    """A reply as it arrived, unchanged."""

    status: int | None = None
    headers: RawFields = ()
    chunks: list[bytes] = field(default_factory=list)
    cut: bool = False
    """Whether there was more than the limit."""
    late: bool = False
    """Whether time ran out before it was complete."""
    failure: UpstreamFailed | None = None

    @property
    def body(self) -> bytes:
        return self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)


class ReplyCollector:
    """Assembles the reply to one request from the bytes of a connection that something else reads."""

    def __init__(self, method: str, body_limit: int) -> None:
        self.reply = CollectedReply()
        self.over = False
        self._remaining = body_limit
        self._parser = ReplyParser(self, lenient=True)
        self._parser.expect(method)
        self.feed = self._parser.feed
        self.on_disconnect = self._parser.on_disconnect

    # -- called by the parser of replies --------------------------------------------------------
    def on_reply_head(self, status: int, reason: str, headers: RawFields, length: int | None) -> None:
        self.reply.status, self.reply.headers = status, headers

    def on_reply_body(self, data: bytes) -> None:
        if self.over:
            return
        self.reply.chunks.append(data[: self._remaining])
        self._remaining -= len(data)
        if self._remaining < 0:
            self.reply.cut = self.over = True

    def on_reply_end(self, reusable: bool) -> None:
        self.over = True

    def on_reply_failure(self, failure: Exception) -> None:
        assert isinstance(failure, UpstreamFailed)
        if not self.over:
            self.reply.failure = failure
        self.over = True
