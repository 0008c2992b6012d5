"""The head of a reply, and how its body is put on the wire."""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus

from msgspec import Struct

from holdfast.http1.heads import Fields, format_header_lines, join_head

_LENGTHS = frozenset((b"content-length", b"transfer-encoding"))
_ENCODING = frozenset((b"transfer-encoding",))
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class Frame(Struct, frozen=True, gc=False):
    """A reply's head, ready to send, and its consequences."""

    head: bytes
    silent: bool
    """Whether no body follows, whatever is written."""
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
