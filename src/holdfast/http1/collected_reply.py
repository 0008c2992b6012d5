"""A reply collected completely, even if it was cut off."""

from __future__ import annotations

from msgspec import Struct, field

from holdfast.http1.heads import RawFields
from holdfast.http1.reply_parser import ReplyParser
from holdfast.streams.failures import UpstreamFailed


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
        self._left = body_limit
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
        self.reply.chunks.append(data[: self._left])
        self._left -= len(data)
        if self._left < 0:
            self.reply.cut = self.over = True

    def on_reply_end(self, reusable: bool) -> None:
        self.over = True

    def on_reply_failure(self, failure: Exception) -> None:
        assert isinstance(failure, UpstreamFailed)
        if not self.over:
            self.reply.failure = failure
        self.over = True
