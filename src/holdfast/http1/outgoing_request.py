"""An outgoing request: checked, framed, ready to send."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from functools import lru_cache
from urllib.parse import quote, urlsplit

from msgspec import Struct

from holdfast.http1.heads import HOP_BY_HOP, Fields, format_header_lines, join_head

_DROPPED = HOP_BY_HOP | {b"content-length", b"expect"}
_WITH_BODY = frozenset(("POST", "PUT", "PATCH"))
_METHOD = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f]")
_LENGTH = ("content-length", b"content-length")
_LINE = b"\r\n"
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))


class Endpoint(Struct, frozen=True, gc=False):
    """The target of a URL."""

    scheme: str
    host: str
    port: int
    authority: str
    """For the Host header."""
    target: str
    """Path and query."""

    @property
    def place(self) -> str:
        """Host and port, including a default port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class OutgoingRequest(Struct, frozen=True):
    """A request."""

    method: str
    head: bytes
    body: bytes
    stream: AsyncIterator[bytes] | None = None
    """A body that is sent after the head instead of `body`."""
    length: int | None = None
    """The length of the stream; chunked if None."""

    async def frame_stream(self) -> AsyncIterator[bytes]:
        """Yield the stream as it goes on the wire; raise ValueError if its length differs from the declared one."""
        assert self.stream is not None
        remaining = self.length
        async for data in self.stream:
            if remaining is None:
                if data:
                    yield b"%x\r\n%b\r\n" % (len(data), data)
                continue
            remaining -= len(data)
            if remaining < 0:
                raise ValueError("a body longer than its declared length")
            yield data
        if remaining:
            raise ValueError("a body shorter than its declared length")
        if remaining is None:
            yield b"0\r\n\r\n"


@lru_cache(512)
def parse_endpoint(url: str) -> Endpoint:
    """Return the target of a URL; raise ValueError if HTTP cannot request it."""
    if _UNPRINTABLE.search(url):
        raise ValueError(f"a URL must not contain spaces or control characters: {url[:200]!r}")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"not an http or https URL: {url[:200]!r}")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    target = quote((parts.path or "/") + (f"?{parts.query}" if parts.query else ""), safe=_PRINTABLE)
    return Endpoint(parts.scheme, parts.hostname, port, parts.netloc.rpartition("@")[2], target)


def build_request(
    method: str, place: Endpoint, headers: Fields, body: bytes | AsyncIterator[bytes] | None
) -> OutgoingRequest:
    """Return the request as it is sent; raise ValueError for a method or header that would break its framing.

    Headers in a tuple are encoded once, however often they are sent.
    """
    start = (_build_head_cached if isinstance(headers, tuple) else _build_head)(method, place, headers)
    if body is None or isinstance(body, bytes):
        data = body or b""
        if data or method in _WITH_BODY:
            return OutgoingRequest(method, b"%bContent-Length: %d\r\n\r\n" % (start, len(data)), data)
        return OutgoingRequest(method, start + _LINE, b"")
    declared = (int(value) for name, value in headers if name.lower() in _LENGTH and value.isdigit())
    length = next(declared, None)
    framing = b"Transfer-Encoding: chunked\r\n\r\n" if length is None else b"Content-Length: %d\r\n\r\n" % length
    return OutgoingRequest(method, start + framing, b"", body, length)


def _build_head(method: str, place: Endpoint, headers: Fields) -> bytes:
    """Return the head, up to the line with the body's length."""
    if method not in _WITH_BODY and not _METHOD.fullmatch(method):
        raise ValueError(f"not an HTTP method: {method[:80]!r}")
    rest, names = format_header_lines(headers, _DROPPED)
    if b"host" not in names:
        name = place.authority
        rest.insert(0, b"Host: " + name.encode("ascii" if name.isascii() else "idna"))
    return join_head(f"{method} {place.target} HTTP/1.1".encode("ascii"), rest).removesuffix(_LINE)


_build_head_cached = lru_cache(256)(_build_head)
