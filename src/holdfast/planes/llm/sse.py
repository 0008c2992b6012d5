"""Server-sent events: written, and read as they pass, whatever their line ends and wherever they are split."""

from __future__ import annotations

from typing import Any

from holdfast.planes.llm.loose import dump

TYPE = "text/event-stream"

LINE_LIMIT = 16_000_000
"""Bytes of one line or one event that are kept; a longer one is left out."""

_BOM = b"\xef\xbb\xbf"


def event(data: Any, name: str = "", end: bytes = b"\n") -> bytes:
    """One event that carries a value as JSON."""
    head = b"event: " + name.encode() + end if name else b""
    return head + b"data: " + dump(data) + end + end


class Lines:
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


class Events:
    """The events of a stream. Comments, ids and retry times are left out; so is an event without data."""

    def __init__(self) -> None:
        self._lines = Lines()
        self._name = ""
        self._data: list[bytes] = []
        self._size = 0
        self._over = False
        self._begun = False

    def feed(self, data: bytes) -> list[tuple[str, bytes]]:
        """The events that are whole by now: name (empty if it has none) and data."""
        events = []
        for line in self._lines.feed(data):
            if line == b"":
                if self._data and not self._over:
                    events.append((self._name, b"\n".join(self._data)))
                self._name, self._data, self._size, self._over = "", [], 0, False
            elif line is None:
                self._over = True
            else:
                self._field(line)
        return events

    def _field(self, line: bytes) -> None:
        if not self._begun:
            line, self._begun = line.removeprefix(_BOM), True
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._size += len(value) + 1
            self._over = self._over or self._size > LINE_LIMIT
            if self._over:
                self._data.clear()
            else:
                self._data.append(value)
        elif name == b"event":
            self._name = value.decode("utf-8", "replace")
