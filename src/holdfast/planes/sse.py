"""Splits a stream into server-sent events, for any kind of line ending and wherever chunks split."""

from __future__ import annotations

import re

from msgspec import Struct

LIMIT = 64_000_000
"""Maximum size of an event that is kept, in bytes."""

_BREAK = re.compile(rb"\r\n|\n|\r")
_END = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!\n))")
"""Two line ends of any kind; CRLF counts as one and is never split."""
_BOM = b"\xef\xbb\xbf"


class SseEvent(Struct, frozen=True):
    """One event, with its bytes. An event that was too long has neither data nor bytes."""

    raw: bytes
    name: str = ""
    data: bytes | None = None
    """None if the event has no data: a comment, a retry time."""
    id: bytes = b""

    @property
    def is_too_long(self) -> bool:
        return not self.raw


class EventSplitter:
    """Reads a stream; an event over the limit is not kept."""

    def __init__(self) -> None:
        self._partial = bytearray()
        self._over = False
        self._begun = False

    def feed(self, data: bytes) -> list[SseEvent]:
        """Return the events that are complete so far."""
        fresh = max(0, len(self._partial) - 3)  # the separator may have begun in the previous chunk
        self._partial += data
        events, at = [], 0
        while end := _END.search(self._partial, max(at, fresh)):
            events.append(self._cut_event(at, end.end()))
            at = end.end()
        del self._partial[:at]
        if len(self._partial) > LIMIT:
            self._over = True
            del self._partial[:-3]
        return events

    def _cut_event(self, start: int, end: int) -> SseEvent:
        over, self._over = self._over or end - start > LIMIT, False
        begun, self._begun = self._begun, True
        if over:
            return SseEvent(b"")
        raw = bytes(self._partial[start:end])
        data: list[bytes] = []
        name = id = b""
        for line in _BREAK.split(raw if begun else raw.removeprefix(_BOM)):
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                data.append(value)
            elif field == b"event":
                name = value
            elif field == b"id":
                id = value
        return SseEvent(raw, name.decode("utf-8", "replace"), b"\n".join(data) if data else None, id)


def list_data(stream: bytes) -> list[bytes]:
    """Return the data of every event of a complete stream, including one that the end cut off."""
    return [event.data for event in EventSplitter().feed(stream + b"\n\n") if event.data is not None]


def format_message(data: bytes, id: bytes = b"") -> bytes:
    """Return an event that carries a message as it is."""
    id_line = b"id: %b\n" % id if id else b""
    lines = b"\n".join([b"data: %b" % line for line in _BREAK.split(data)])
    return b"event: message\n%b%b\n\n" % (id_line, lines)
