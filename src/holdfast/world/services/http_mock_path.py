"""Whether a path fits the pattern of a route, in time that grows with pattern times path, whatever the two are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

_PART = re.compile(r"\{(\w+)\}|\*\*|\*|[^{}*]+|.", re.DOTALL)


class _Literal(NamedTuple):
    text: str

    def reaches(self, path: str, ends: bytes) -> bytes:
        starts = bytearray(len(path) + 1)
        at = path.find(self.text)
        while at >= 0:
            starts[at] = ends[at + len(self.text)]
            at = path.find(self.text, at + 1)
        return bytes(starts)

    def longest(self, path: str, at: int, ends: bytes) -> int:
        return at + len(self.text)


class _Anything(NamedTuple):
    """`**`: any text, slashes too."""

    def reaches(self, path: str, ends: bytes) -> bytes:
        last = ends.rfind(1)
        return b"\1" * (last + 1) + bytes(len(path) - last)

    def longest(self, path: str, at: int, ends: bytes) -> int:
        return ends.rfind(1)


class _Within(NamedTuple):
    """`*` and `{name}`: text of one segment, of at least so many characters."""

    name: str = ""
    least: int = 0

    def reaches(self, path: str, ends: bytes) -> bytes:
        starts = bytearray(len(path) + 1)
        for first, end in _segments(path):
            last = ends.rfind(1, first + self.least, end + 1)
            if last >= 0:
                starts[first : last + 1 - self.least] = b"\1" * (last + 1 - self.least - first)
        return bytes(starts)

    def longest(self, path: str, at: int, ends: bytes) -> int:
        slash = path.find("/", at)
        return ends.rfind(1, at + self.least, (len(path) if slash < 0 else slash) + 1)


class PathPattern:
    """`/users/{id}` takes one segment by name, `*` part of one, `**` any number of them; the rest is literal.

    It is compared with a path whose percent escapes are decoded, so those of the pattern are, too: `%2A` is a star.
    """

    def __init__(self, pattern: str) -> None:
        self._parts = [*_parts(pattern)]

    def match(self, path: str) -> dict[str, str] | None:
        """What was taken by name, None if the path does not fit. Where there is a choice, the first part takes most."""
        if not self._begins(path):
            return None
        rows = [bytes(len(path)) + b"\1"]
        """From which places on the last parts fit the rest of the path, one part more in each."""
        for part in reversed(self._parts):
            rows.append(part.reaches(path, rows[-1]))
        if not rows[-1][0]:
            return None
        named, at = {}, 0
        for part, ends in zip(self._parts, reversed(rows[:-1]), strict=True):
            start, at = at, part.longest(path, at, ends)
            if isinstance(part, _Within) and part.name:
                named[part.name] = path[start:at]
        return named

    def _begins(self, path: str) -> bool:
        """Whether it is worth a look: most routes differ from a path in how they begin."""
        first = self._parts[0] if self._parts else None
        return path.startswith(first.text) if isinstance(first, _Literal) else True


def _parts(pattern: str) -> Iterator[_Literal | _Anything | _Within]:
    named: set[str] = set()
    for found in _PART.finditer(pattern):
        text, name = found[0], found[1]
        if name:
            fresh = name.isidentifier() and name not in named
            named.add(name)
            yield _Within(name if fresh else "", 1)
        elif text == "**":
            yield _Anything()
        else:
            yield _Within() if text == "*" else _Literal(unquote(text))


def _segments(path: str) -> Iterator[tuple[int, int]]:
    """Where each begins and ends."""
    first = 0
    while (end := path.find("/", first)) >= 0:
        yield first, end
        first = end + 1
    yield first, len(path)
