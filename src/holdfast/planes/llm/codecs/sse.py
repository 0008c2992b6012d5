"""Server-sent events: written, and read as they pass, whatever their line ends and wherever they are split."""

from __future__ import annotations

from typing import Any

from holdfast.planes import sse
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
