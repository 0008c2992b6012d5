"""One codec for everything that is stored or crosses a process border: JSON by msgspec."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_canonical = msgspec.json.Encoder(order="sorted", enc_hook=str)

encode = _encoder.encode
"""A value as one line of JSON."""


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """A reusable decoder for one type; building it costs more than using it."""
    return msgspec.json.Decoder(kind)


def canonical(value: Any) -> bytes:
    """JSON with sorted keys, so that equal content gives equal bytes on any machine."""
    return _canonical.encode(value)


def digest(data: bytes, size: int = 6) -> str:
    """Hex digest of `size` bytes: 6 bytes are the 12 digits of a trial's id."""
    return blake2b(data, digest_size=size).hexdigest()


def to_builtins(value: Any) -> Any:
    """The value as plain dicts, lists and scalars."""
    return msgspec.to_builtins(value)


def encodable(text: str) -> str:
    """The text without lone surrogates, which JSON in UTF-8 cannot carry."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text
