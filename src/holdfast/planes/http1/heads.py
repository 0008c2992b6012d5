"""Heads of messages: what is in them, and how they are written so that nothing can be smuggled in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

HEAD_LIMIT = 65_536
"""A longer head, or trailer, is refused: it is held in memory as a whole."""

RawFields: TypeAlias = tuple[tuple[bytes, bytes], ...]
"""Header fields as they came: order, spelling and repetitions kept."""
Fields: TypeAlias = Iterable[tuple[str, str]] | Iterable[tuple[bytes, bytes]]
"""Header fields to send."""

HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
"""What concerns one connection only, and is never passed on."""

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


def value_of(fields: RawFields, name: str) -> str | None:
    """The first field of that name, in any spelling."""
    wanted = name.lower().encode("latin-1")
    length = len(wanted)
    for key, value in fields:
        if len(key) == length and key.lower() == wanted:
            return value.decode("latin-1")
    return None


def end_to_end(fields: RawFields) -> RawFields:
    """The fields that are passed on: without hop-by-hop ones and those that `Connection` names."""
    dropped = HOP_BY_HOP
    for key, value in fields:
        if len(key) == 10 and key.lower() == b"connection":
            dropped = dropped.union(token.strip().lower() for token in value.split(b","))
    return tuple([field for field in fields if field[0].lower() not in dropped])


def lines(fields: Fields, without: frozenset[bytes]) -> list[bytes]:
    """Fields as header lines. A name that is not a token raises ValueError."""
    found = []
    for name, value in fields:
        key, lower = _token(name)
        if lower not in without:
            found.append(b"%b: %b" % (key, value if isinstance(value, bytes) else value.encode("latin-1")))
    return found


@lru_cache(1024)
def _token(name: str | bytes) -> tuple[bytes, bytes]:
    """A header name, checked, and in small letters. Few are in use, so each is looked at once."""
    key = name if isinstance(name, bytes) else name.encode("latin-1")
    if not _TOKEN.fullmatch(key):
        raise ValueError(f"not a header name: {key[:80]!r}")
    return key, key.lower()


def block(first: bytes, rest: list[bytes]) -> bytes:
    """A whole head. A line break inside a line raises ValueError."""
    data = b"\r\n".join((first, *rest, b"", b""))
    breaks = len(rest) + 2
    if data.count(b"\n") != breaks or data.count(b"\r") != breaks or b"\0" in data:
        raise ValueError("a header must not hold a line break or a null byte")
    return data


def size(fields: Iterable[tuple[bytes, bytes]]) -> int:
    """How long the fields are on the wire."""
    return sum(len(name) + len(value) + 4 for name, value in fields)


def length_of(fields: Iterable[tuple[bytes, bytes]]) -> int | None:
    """The declared length of the body; None if there is none, or it is not what ends the body."""
    found = None
    for name, value in fields:
        if len(name) == 14 and name.lower() == b"content-length" and value.isdigit():
            found = int(value)
        elif len(name) == 17 and name.lower() == b"transfer-encoding":
            return None
    return found


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a request."""

    method: str
    target: str
    """As sent: a path, a whole URL (to a proxy), `host:port` (CONNECT) or `*`."""
    headers: RawFields

    def get(self, name: str) -> str | None:
        """The first header of that name, in any spelling."""
        return value_of(self.headers, name)
