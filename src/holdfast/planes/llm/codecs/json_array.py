"""A stream that is one JSON array: what Google sends without `alt=sse`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from holdfast.model.completion import Cut
from holdfast.planes.llm.codecs.codec import StreamFrame
from holdfast.planes.llm.codecs.sse import LINE_LIMIT

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
