"""Converts bodies to values that faults can read and change, and back."""

from __future__ import annotations

import json
import zlib
from email.message import Message
from functools import lru_cache
from typing import Any

READABLE = ("gzip", "x-gzip", "deflate", "identity")
"""Content encodings that are decoded for a fault; a client's offer is reduced to these."""


def decode_body(content_type: str | None, body: bytes) -> Any:
    """Return a JSON object or array if the type says JSON; else text; else the bytes themselves."""
    kind, charset = _parse_content_type(content_type)
    try:
        text = body.decode(charset)
    except (ValueError, LookupError):  # not in that charset, or an unknown charset
        return body
    if kind == "application/json" or kind.endswith(("+json", "/json")):
        data = _parse_json(text)
        if isinstance(data, dict | list):
            return data
    return text


def to_readable_text(content_type: str | None, body: bytes) -> str:
    """Return the readable part of a body; undecodable bytes are replaced."""
    try:
        return body.decode(_parse_content_type(content_type)[1], "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def encode_body(value: Any, content_type: str | None) -> bytes:
    """Return the value as a body of that type. Text is sent as it is: broken JSON stays broken."""
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    _, charset = _parse_content_type(content_type)
    if isinstance(value, str):
        try:
            return value.encode(charset)
        except (ValueError, LookupError):
            return value.encode("utf-8", "replace")
    try:
        return json.dumps(value, ensure_ascii=False).encode(charset)
    except (ValueError, LookupError):
        return json.dumps(value).encode()


def decompress(encoding: str | None, body: bytes, limit: int) -> bytes | None:
    """Return the body without its content encoding, at most `limit` bytes; None if it cannot be decoded."""
    name = (encoding or "identity").strip().lower()
    if name in ("identity", ""):
        return body[:limit]
    if name not in READABLE:
        return None
    for bits in (31,) if "gzip" in name else (15, -15):  # some servers send deflate without its zlib header
        try:
            return zlib.decompressobj(bits).decompress(body, limit)
        except zlib.error:
            continue
    return None


def limit_encodings(offered: str) -> str:
    """Return an `accept-encoding` reduced to the encodings that can be decoded."""
    readable_parts = [part.strip() for part in offered.split(",") if part.partition(";")[0].strip().lower() in READABLE]
    return ", ".join(readable_parts) or "identity"


@lru_cache(256)
def _parse_content_type(content_type: str | None) -> tuple[str, str]:
    message = Message()
    message["content-type"] = content_type or "text/plain"
    charset = message.get_param("charset")
    return message.get_content_type(), charset if isinstance(charset, str) and charset else "utf-8"


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
