"""What a mock keeps of the requests that reached it, in bounded memory."""

from __future__ import annotations

from holdfast.protocols import Recorded
from holdfast.world.services.http_mock_routes import MockRequest, Replied

REQUESTS_KEPT = 10_000
BODY_KEPT = 1_000_000
"""Bytes of a body that are read and kept."""
RECORD_KEPT = 32_000_000
"""Characters of all requests and responses together that are kept."""


class RequestRecord:
    """The first requests, in the order in which they came; those after them are only counted."""

    def __init__(self, service: str) -> None:
        self.requests: list[Recorded] = []
        self.dropped = 0
        self._cut = False
        """A body was longer than what is kept of one."""
        self._unread = ""
        """Why a body could not be understood."""
        self._service = service
        self._size = 0

    def add(self, asked: MockRequest, replied: Replied, ts: float) -> None:
        self._cut |= asked.cut
        self._unread = self._unread or asked.unread
        size = self._size + _size(asked, replied)
        if self.dropped or len(self.requests) >= REQUESTS_KEPT or size > RECORD_KEPT:
            self.dropped += 1
            return
        self._size = size
        self.requests.append(
            Recorded(
                method=asked.method,
                path=asked.path,
                query=asked.query,
                headers=asked.headers,
                body=asked.body,
                status=replied.status,
                response=replied.body,
                ts=ts,
                cut=asked.cut,
                unread=asked.unread,
            )
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know, as far as it is known now."""
        kept = f"{self._service} got {self.dropped} more requests than it keeps: the first {len(self.requests)}"
        cut = f"a body that {self._service} got was cut at {BODY_KEPT} bytes"
        unread = f"a body that {self._service} got cannot be read: {self._unread}"
        told = ((kept, self.dropped), (cut, self._cut), (unread, self._unread))
        return tuple(note for note, so in told if so)


def _size(asked: MockRequest, replied: Replied) -> int:
    headers = sum(len(name) + len(value) for name, value in asked.headers)
    return len(asked.path) + len(asked.query) + headers + len(asked.body) + len(replied.body)
