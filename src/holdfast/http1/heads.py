"""Message heads: reads them, and writes them safe from header injection, with the framing of the body that follows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple, TypeAlias

from msgspec import Struct

HEAD_LIMIT = 65_536
"""A longer head, or trailer, is rejected, because it is held in memory completely."""

RawFields: TypeAlias = tuple[tuple[bytes, bytes], ...]
"""Header fields as received: with order, case and repetitions."""
Fields: TypeAlias = Sequence[tuple[str, str]] | Sequence[tuple[bytes, bytes]]
"""Header fields to send."""
JSON_TYPE = (("content-type", "application/json"),)
"""The header of a JSON body."""

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
"""Hop-by-hop headers, which are never forwarded."""

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


def find_header(fields: RawFields, name: str) -> str | None:
    """Return the first field with that name, in any case."""
    _, lower_name = _encode_name(name)
    length = len(lower_name)
    for key, value in fields:
        if len(key) == length and key.lower() == lower_name:
            return value.decode("latin-1")
    return None


def drop_hop_by_hop(fields: RawFields) -> RawFields:
    """Return the fields to forward: without hop-by-hop ones and those that `Connection` names."""
    forwarded: list[tuple[bytes, bytes]] = []
    excluded: set[bytes] = set()
    for field in fields:
        name = field[0].lower()
        if name not in HOP_BY_HOP:
            forwarded.append(field)
        elif name == b"connection":
            excluded.update([token.strip().lower() for token in field[1].split(b",")])
    excluded -= HOP_BY_HOP
    return tuple([field for field in forwarded if field[0].lower() not in excluded] if excluded else forwarded)


def format_header_lines(fields: Fields, without: frozenset[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Return fields as header lines, and each name in lower case. Raises ValueError for a name that is not a token."""
    header_lines, names = [], []
    for name, value in fields:
        start, lower = _encode_name(name)
        if lower not in without:
            header_lines.append(start + (value if isinstance(value, bytes) else value.encode("latin-1")))
            names.append(lower)
    return header_lines, names


@lru_cache(1024)
def _encode_name(name: str | bytes) -> tuple[bytes, bytes]:
    """Return the start of a header line, and the name in lower case. Few names are in use, so each is checked once."""
    key = name if isinstance(name, bytes) else name.encode("latin-1")
    if not _TOKEN.fullmatch(key):
        raise ValueError(f"not a header name: {key[:80]!r}")
    return key + b": ", key.lower()


def join_head(first: bytes, rest: list[bytes]) -> bytes:
    """Return a complete head. Raises ValueError for a line break inside a line."""
    data = b"\r\n".join((first, *rest, b"", b""))
    breaks = len(rest) + 2
    if data.count(b"\n") != breaks or data.count(b"\r") != breaks or b"\0" in data:
        raise ValueError("a header must not contain a line break or a null byte")
    return data


def measure_fields(fields: Iterable[tuple[bytes, bytes]]) -> int:
    """Return the length of the fields on the wire."""
    return sum(len(name) + len(value) + 4 for name, value in fields)


class BodyFraming(NamedTuple):
    """The body framing in a head."""

    length: int | None
    """The declared length; None if there is none, or if it does not determine the end of the body."""
    chunked: bool
    awaited: bool
    """Whether the client waits for `100 Continue`."""


_FRAMING_LENGTHS = frozenset((len("expect"), len("content-length"), len("transfer-encoding")))


def read_body_framing(fields: Iterable[tuple[bytes, bytes]]) -> BodyFraming:
    """Return the body framing in the fields, in one pass over them."""
    length: int | None = None
    coded = chunked = awaited = False
    for name, value in fields:
        if len(name) not in _FRAMING_LENGTHS:
            continue
        lower = name.lower()
        if lower == b"content-length" and value.isdigit():
            length = int(value)
        elif lower == b"transfer-encoding":
            coded, chunked = True, chunked or b"chunked" in value.lower()
        elif lower == b"expect":
            awaited = awaited or value.lower() == b"100-continue"
    return BodyFraming(None if coded else length, chunked, awaited)


class RequestHead(Struct, frozen=True, gc=False):
    """The head of a request."""

    method: str
    target: str
    """The request target as sent: a path, an absolute URL (to a proxy), `host:port` (CONNECT) or `*`."""
    headers: RawFields

    def get(self, name: str) -> str | None:
        """Return the first header with that name, in any case."""
        return find_header(self.headers, name)


class BadRequest(Exception):
    """A request that cannot be parsed: the client gets `status`, and the connection ends."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


_LENGTHS = frozenset((b"content-length", b"transfer-encoding"))
_ENCODING = frozenset((b"transfer-encoding",))
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class Frame(Struct, frozen=True, gc=False):
    """A reply's head, ready to send, and its consequences."""

    head: bytes
    silent: bool
    """Whether the reply has no body, even if one is written."""
    chunked: bool
    keep_alive: bool


def build_frame(
    status: int,
    headers: Fields,
    length: int | None,
    *,
    method: str,
    modern: bool,
    keep_alive: bool,
    reason: str | None = None,
) -> Frame:
    """Return a reply to `method`. `modern` is a client that supports HTTP/1.1; an unknown length is None."""
    bare = status < 200 or status == 204  # not even a length is sent
    silent = bare or status == 304 or method == "HEAD"
    chunked = not silent and length is None and modern
    fields, names = format_header_lines(headers, _ENCODING if silent and not bare else _LENGTHS)
    closing = not silent and length is None and not modern
    if b"connection" in names:
        connection_lines = [line.lower() for line, name in zip(fields, names, strict=True) if name == b"connection"]
        fields = [line for line, name in zip(fields, names, strict=True) if name != b"connection"]
        closing = closing or any(b"close" in line for line in connection_lines)
    if chunked:
        fields.append(b"Transfer-Encoding: chunked")
    elif length is not None and not bare and not (silent and (status == 304 or b"content-length" in names)):
        fields.append(b"Content-Length: %d" % length)
    if closing or not keep_alive:
        fields.append(b"Connection: close")
    elif not modern:
        fields.append(b"Connection: keep-alive")
    return Frame(join_head(_build_status_line(status, reason), fields), silent, chunked, keep_alive and not closing)


def build_switch_head(status: int, headers: Fields) -> bytes:
    """Return the head that ends HTTP on a connection: 101, or an accepted CONNECT."""
    reason = "Connection Established" if status == 200 else None
    return join_head(_build_status_line(status, reason), format_header_lines(headers, _LENGTHS)[0])


@lru_cache(256)
def _build_status_line(status: int, reason: str | None) -> bytes:
    return b"HTTP/1.1 %d %b" % (status, (_PHRASES.get(status, "") if reason is None else reason).encode("latin-1"))
