"""Streams of events: written, and read as they pass, whatever their line ends and wherever they are split.

Server-sent events, and the JSON array that Google sends without `alt=sse`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.model.completion import Cut
from holdfast.planes import sse
from holdfast.planes.llm.codecs.codec import StreamFrame
from holdfast.planes.llm.codecs.loose import dump

TYPE = "text/event-stream"

LINE_LIMIT = 16_000_000
"""Bytes of one line or one event that are kept; a longer one is left out."""


def event(data: Any, name: str = "", end: bytes = b"\n") -> bytes:
    """One event that carries a value as JSON."""
    head = b"event: " + name.encode() + end if name else b""
    return head + b"data: " + dump(data) + end + end


class StreamLines:
    """Lines of a byte stream, ended by CRLF, LF or CR. A line over the limit comes as None."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._over = False
        self._after_cr = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """The lines that are whole by now."""
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *others = data.split(b"\n")
        self._keep(first)
        if not others:
            return []
        lines: list[bytes | None] = [self.rest(), *others[:-1]]
        self._keep(others[-1])
        return lines

    def rest(self) -> bytes | None:
        """What follows the last line end; taken away."""
        line = None if self._over else bytes(self._rest)
        self._rest.clear()
        self._over = False
        return line

    def _keep(self, part: bytes) -> None:
        if self._over or len(self._rest) + len(part) > LINE_LIMIT:
            self._over = True
            self._rest.clear()
        else:
            self._rest += part


class DataEvents:
    """The events of a stream that carry data, by name. Comments, ids and retry times are left out."""

    def __init__(self) -> None:
        self._events = sse.EventSplitter(LINE_LIMIT)

    def feed(self, data: bytes) -> list[tuple[str, bytes]]:
        """The events that are whole by now: name (empty if it has none) and data."""
        return [(event.name, event.data) for event in self._events.feed(data) if event.data is not None]


_SIGNS = re.compile(rb'["\\{}]')


def as_array(frames: Iterable[StreamFrame]) -> Iterator[StreamFrame]:
    """The frames of an event stream as the elements of an array; it is closed unless the connection is lost."""
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
    """The objects in an array, as they become whole; one over the limit is left out."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._depth = 0
        self._in_text = False
        self._escaped = False

    def feed(self, data: bytes) -> list[tuple[str, bytes]]:
        """The objects that are whole by now; the name is always empty, as for events without one."""
        found = []
        start, position = 0, int(self._escaped)
        self._escaped = self._escaped and not data
        while (match := _SIGNS.search(data, position)) is not None:
            position, depth = match.end(), self._depth
            if match.group() == b"\\":
                self._escaped = position == len(data)
                position += 1
                continue
            self._see(match.group())
            if depth == 0 and self._depth == 1:
                start = match.start()
            elif depth == 1 and self._depth == 0:
                found.append(("", bytes(self._kept) + data[start:position]))
                self._kept.clear()
        self._keep(data[start:])
        return found

    def _see(self, sign: bytes) -> None:
        if sign == b'"':
            self._in_text = self._depth > 0 and not self._in_text
        elif not self._in_text:
            self._depth = max(0, self._depth + (1 if sign == b"{" else -1))

    def _keep(self, rest: bytes) -> None:
        """Keeps the beginning of an object that is not whole yet."""
        if self._depth > 0:
            self._kept += rest
            if len(self._kept) > LINE_LIMIT:
                self._kept.clear()
