"""Server-sent events, cut out of a stream as they came."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

EVENT_LIMIT = 64_000_000
_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_BREAK = re.compile(rb"\r\n|\n|\r")


class Event(Struct, frozen=True):
    """One event, with its bytes."""

    raw: bytes
    data: bytes
    id: bytes = b""

    def saying(self, data: bytes) -> bytes:
        """The same event with other data."""
        return event(data, self.id)


class Events:
    """Reads a stream."""

    def __init__(self) -> None:
        self._partial = bytearray()

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events that are complete now. One without end raises ValueError."""
        fresh = max(0, len(self._partial) - 3)  # an end may have begun before
        self._partial += data
        at = 0
        while found := _END.search(self._partial, max(at, fresh)):
            yield _read(bytes(self._partial[at : found.end()]))
            at = found.end()
        del self._partial[:at]
        if len(self._partial) > EVENT_LIMIT:
            raise ValueError("an event without end")

    @property
    def rest(self) -> bytes:
        """What came and is no whole event."""
        return bytes(self._partial)


def event(data: bytes, id: bytes = b"") -> bytes:
    """An event of a JSON-RPC message."""
    named = b"id: %b\n" % id if id else b""
    told = b"\n".join([b"data: %b" % line for line in _BREAK.split(data)])
    return b"event: message\n%b%b\n\n" % (named, told)


def _read(raw: bytes) -> Event:
    data, named = [], b""
    for line in _BREAK.split(raw):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"id":
            named = value
    return Event(raw, b"\n".join(data), named)
