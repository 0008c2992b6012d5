"""Event streams: writes them, and reads them as they pass, for any line ending and any split.

Supports server-sent events, and the JSON array that Google sends without `alt=sse`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from holdfast.model.completion import Cut, Pause
from holdfast.planes import sse
from holdfast.planes.llm.codecs.loose import dump_json

TYPE = "text/event-stream"

LINE_LIMIT = 16_000_000
"""Maximum size of one line or event, in bytes; a longer one is dropped."""

StreamFrame: TypeAlias = bytes | Pause | Cut
"""The next step of a stream: bytes, a pause, or the end of the connection."""


def format_event(data: Any, name: str = "", end: bytes = b"\n") -> bytes:
    """Return one event with a JSON value."""
    head = b"event: " + name.encode() + end if name else b""
    return head + b"data: " + dump_json(data) + end + end


class StreamLines:
    """A stream of one JSON object per line. A line over the limit is dropped."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._over = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete so far, without empty ones. CR, LF and CRLF all end a line."""
        *whole, rest = data.replace(b"\r", b"\n").split(b"\n")
        lines = []
        for part in whole:
            self._keep(part)
            if not self._over and self._rest.strip():
                lines.append(bytes(self._rest))
            self._rest.clear()
            self._over = False
        self._keep(rest)
        return lines

    def _keep(self, part: bytes) -> None:
        self._over = self._over or len(self._rest) + len(part) > LINE_LIMIT
        if self._over:
            self._rest.clear()
        else:
            self._rest += part


class DataEvents:
    """The events of a stream that have data. Comments, names, ids and retry times are dropped."""

    def __init__(self) -> None:
        self._events = sse.EventSplitter(LINE_LIMIT)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the data of the events that are complete so far."""
        return [event.data for event in self._events.feed(data) if event.data is not None]


_SIGNS = re.compile(rb'["\\{}]')


def frame_as_array(frames: Iterable[StreamFrame]) -> Iterator[StreamFrame]:
    """Yield the frames of an event stream as elements of an array, which is closed unless the connection is lost."""
    lead, cut = b"[", False
    for frame in frames:
        if isinstance(frame, bytes):
            yield lead + frame.removeprefix(b"data: ").rstrip()
            lead = b",\r\n"
        else:
            yield frame
            cut = isinstance(frame, Cut)
    if not cut:
        yield b"]" if lead != b"[" else b"[]"


class Elements:
    """Reads the objects in an array as they become complete; an object over the limit is dropped."""

    def __init__(self) -> None:
        self._partial = bytearray()
        self._depth = 0
        self._in_text = False
        self._escaped = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the objects that are complete so far."""
        objects = []
        start, position = 0, int(self._escaped)
        self._escaped = self._escaped and not data
        while (match := _SIGNS.search(data, position)) is not None:
            # Only quotes, backslashes and braces matter. Braces inside a text do not count, and the character after a
            # backslash is skipped, even if it comes with the next chunk.
            position, depth = match.end(), self._depth
            if match.group() == b"\\":
                self._escaped = position == len(data)
                position += 1
                continue
            self._track_depth(match.group())
            if depth == 0 and self._depth == 1:
                start = match.start()
            elif depth == 1 and self._depth == 0:
                objects.append(bytes(self._partial) + data[start:position])
                self._partial.clear()
        self._keep(data[start:])
        return objects

    def _track_depth(self, sign: bytes) -> None:
        if sign == b'"':
            self._in_text = self._depth > 0 and not self._in_text
        elif not self._in_text:
            self._depth = max(0, self._depth + (1 if sign == b"{" else -1))

    def _keep(self, rest: bytes) -> None:
        """Keep the beginning of an incomplete object."""
        if self._depth > 0:
            self._partial += rest
            if len(self._partial) > LINE_LIMIT:
                self._partial.clear()
