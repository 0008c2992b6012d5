"""Reads type, charset and compression of a reply's body from its headers. Pure."""

from __future__ import annotations

import zlib
from functools import lru_cache

from holdfast.http1.heads import RawFields, find_header

_WBITS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS}
_OTHERS = frozenset(("br", "zstd", "compress"))
"""Encodings that Holdfast does not request and cannot read; any other word is ignored."""


class UnreadableBody(Exception):
    """A body does not match its Content-Encoding. `found` is what could be read before the error."""

    def __init__(self, message: str, data: bytes = b"") -> None:
        super().__init__(message)
        self.partial = data


def read_content_type(fields: RawFields) -> tuple[str, str | None]:
    """Return the type and charset of a body."""
    return _parse_content_type(find_header(fields, "content-type"))


@lru_cache(64)
def _parse_content_type(header: str | None) -> tuple[str, str | None]:
    if header is None:
        return "application/octet-stream", None
    kind, *params = header.split(";")
    kind = kind.strip().lower()
    for param in params:
        name, _, value = param.partition("=")
        if name.strip().lower() == "charset":
            return kind, value.strip().strip('"') or None
    return kind, None


def unpack_body(fields: RawFields, body: bytes, limit: int, *, whole: bool) -> bytes:
    """Decompress a body, up to one byte over `limit`; raise Unpackable if it cannot.

    A body that is not `whole` is read as far as possible.
    """
    packing = (find_header(fields, "content-encoding") or "").strip().lower()
    if not body or not packing:
        return body
    if packing in _OTHERS:
        raise UnreadableBody(f"its Content-Encoding is {packing}, which was not requested")
    if packing == "deflate":  # with the frame that it should have, or bare, as some servers send it
        return _inflate(body, zlib.MAX_WBITS if body[0] & 15 == 8 else -zlib.MAX_WBITS, limit, whole)
    wbits = _WBITS.get(packing)
    return body if wbits is None else _inflate(body, wbits, limit, whole)


def _inflate(body: bytes, wbits: int, limit: int, whole: bool) -> bytes:
    output = b""
    while body and len(output) <= limit:
        inflating = zlib.decompressobj(wbits)
        try:
            output += inflating.decompress(body, limit + 1 - len(output))
        except zlib.error as wrong:
            raise UnreadableBody("the body is not what its Content-Encoding says", output) from wrong
        if not inflating.eof:
            break
        body = inflating.unused_data  # gzip may have several members
    if whole and len(output) <= limit and not inflating.eof:
        raise UnreadableBody("the body ends before its Content-Encoding does", output)
    return output
