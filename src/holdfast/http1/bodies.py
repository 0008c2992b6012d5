"""Undoes the compression of bodies, in bounded memory."""

from __future__ import annotations

import zlib
from typing import Literal, NamedTuple

ENCODINGS = frozenset(("gzip", "x-gzip", "deflate"))


class Inflated(NamedTuple):
    """A body, as far as it could be decompressed: up to one byte more than the limit."""

    data: bytes
    problem: Literal["", "damaged", "incomplete"] = ""


def inflate(encoding: str, body: bytes, limit: int) -> Inflated:
    """Undo one of the encodings."""
    # Some servers and clients send deflate without its frame, whose first byte ends in 8.
    wbits = 31 if "gzip" in encoding else 15 if body[:1] and body[0] & 15 == 8 else -15
    data = b""
    # One byte more than the limit is produced, never more: that tells a body that is too long from one that fits, and a
    # small body cannot unpack to gigabytes.
    while body and len(data) <= limit:
        member = zlib.decompressobj(wbits)
        try:
            data += member.decompress(body, limit + 1 - len(data))
        except zlib.error:
            return Inflated(data, "damaged")
        if not member.eof and len(data) <= limit:
            return Inflated(data, "incomplete")
        body = member.unused_data  # gzip may have several members
    return Inflated(data)
