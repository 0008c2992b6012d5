"""A request as a mutation of the request changes it: the bytes that are sent. Pure.

What HTTP does not allow is written too: only here nothing is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from holdfast.agents.http_changed_body import changed_body
from holdfast.agents.http_request import HttpRequest
from holdfast.agents.http_url import HttpUrl
from holdfast.model.task import RequestChange

HEADER_SIZE_LIMIT = 100_000
HEADER_COUNT_LIMIT = 2_000
_WITH_BODY = frozenset(("POST", "PUT", "PATCH"))
_CHUNKS = (1, 3, 2, 17, 5, 1_000, 16_384)
"""The sizes of chunks, one after the other and again from the start."""


class WireRequest(Struct, frozen=True):
    """A request as bytes: what is sent before a body, and from there on."""

    method: str
    head: bytes
    rest: bytes


def wire_request(
    change: RequestChange, url: HttpUrl, lines: tuple[bytes, ...], request: HttpRequest, cookie: str, parameter: str
) -> WireRequest:
    """The changed request; `lines` are the agent's headers, `parameter` is where its prompt stands."""
    method = request.method
    if change.method:
        method = change.method if change.method != method else "PATCH"
    body = None if change.body == "none" else request.body
    if change.body and change.body != "none":
        body = changed_body(b"" if body is None else body, change.body, change.size)
    framing, rest = _framed(change, method, body)
    target = _target(change, url, request.target, parameter)
    first = f"{method} {target} HTTP/{change.version}".encode()
    cookies = [b"Cookie: " + cookie.encode()] if cookie else []
    head = [first, *_headers(change, lines), *cookies, *framing, b"", b""]
    end = change.line_end.encode()
    return WireRequest(method, _raw(change.before) + end.join(head), rest + _raw(change.after))


def _target(change: RequestChange, url: HttpUrl, target: str, parameter: str) -> str:
    if change.query:
        added = "&".join(piece.replace("{parameter}", parameter) for piece in change.query)
        target += ("&" if "?" in target else "?") + added
    return f"{url.endpoint.scheme}://{url.endpoint.authority}{target}" if change.absolute else target


def _headers(change: RequestChange, lines: tuple[bytes, ...]) -> Iterator[bytes]:
    """The agent's lines with those of the change, and a connection that nobody keeps."""
    replaced = {name.lower() for name, _ in change.headers}
    gone = {*replaced, *change.without, "connection"}
    for line in lines:
        if line.partition(b":")[0].decode("latin-1").lower() not in gone:
            yield line
    if "connection" not in replaced:
        yield b"Connection: close"
    for name, value in (*change.headers, *change.added):
        yield _raw(f"{name}: {value}")
    for n in range(min(change.header_count, HEADER_COUNT_LIMIT)):
        yield b"X-Holdfast-%d: %d" % (n, n)
    if change.header_size:
        yield b"X-Holdfast-Long: " + b"a" * min(change.header_size, HEADER_SIZE_LIMIT)


def _framed(change: RequestChange, method: str, body: bytes | None) -> tuple[list[bytes], bytes]:
    """The headers that tell how long the body is, and the body as it goes on the wire."""
    if body is None and method not in _WITH_BODY and change.framing == "length":
        return [], b""
    data = body or b""
    if change.framing in ("chunked", "both"):
        chunks = b"".join(_chunks(data)) + b"0\r\n" + (_raw(change.trailer) + b"\r\n" if change.trailer else b"")
        rest = chunks + b"\r\n"
        # Both: whichever a server goes by, it reads all that is sent and no byte of it as another request.
        both = [b"Content-Length: %d" % len(rest)] if change.framing == "both" else []
        return [*both, b"Transfer-Encoding: chunked"], rest
    told = b"Content-Length: %s%d" % (b"000" if change.framing == "zeros" else b"", len(data))
    return [told] * (2 if change.framing == "twice" else 1), data


def _chunks(data: bytes) -> Iterator[bytes]:
    """The data in chunks of odd sizes; each second one with an extension and leading zeros."""
    at = n = 0
    while at < len(data):
        piece = data[at : at + _CHUNKS[n % len(_CHUNKS)]]
        size = b"%x" % len(piece) if n % 2 == 0 else b'00%X;holdfast="odd"' % len(piece)
        yield b"%b\r\n%b\r\n" % (size, piece)
        at, n = at + len(piece), n + 1


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "replace")
