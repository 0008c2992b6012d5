"""The one codec for everything that is stored or crosses a process border: JSON by msgspec, and its format numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

T = TypeVar("T")


def _encode_path(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} cannot be stored")


def _decode_path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(f"{kind.__name__} cannot be read back")


_encoder = msgspec.json.Encoder(enc_hook=_encode_path)
_canonical = msgspec.json.Encoder(order="sorted", enc_hook=str)

encode = _encoder.encode
"""A value as one line of JSON."""
encode_lines = _encoder.encode_lines
"""Many values, each as one line of JSON with its newline."""


class LazyDecoder(Generic[T]):
    """Reads values of one type. The decoder is built at first use, because most commands use few."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[T]:
        return msgspec.json.Decoder(self._kind, dec_hook=_decode_path)

    @cached_property
    def decode(self) -> Callable[[bytes | str], T]:
        return self._decoder.decode


def create_decoder(kind: type[T]) -> LazyDecoder[T]:
    """Return a reusable decoder for one type; building it costs more than using it."""
    return LazyDecoder(kind)


def encode_canonical(value: Any) -> bytes:
    """Encode as JSON with sorted keys: equal content gives equal bytes on any machine."""
    return _canonical.encode(value)


def digest(data: bytes, size: int = 6) -> str:
    """Return a hex digest of `size` bytes; the 12 digits of a trial's id are 6 bytes."""
    return blake2b(data, digest_size=size).hexdigest()


to_builtins = msgspec.to_builtins
"""A value as plain dicts, lists and scalars."""


HALVES = "halves of characters (lone surrogates) occurred, which no encoding supports: each was replaced with \ufffd"
"""The note of a trial whose text was changed."""


def make_encodable(text: str) -> str:
    """Return the text without lone surrogates, which UTF-8 cannot encode: pairs are joined, others become �."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:  # UTF-16 joins two halves into one character, whoever put them side by side
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def make_storable(value: T) -> T:
    """Return the value with every text in it encodable, or the value itself if it already is. This costs as much as
    writing it.
    """
    try:
        _encoder.encode(value)
    except UnicodeEncodeError:
        changed: T = _make_storable(value)
        return changed
    return value


def _make_storable(value: Any) -> Any:
    if isinstance(value, str):
        return make_encodable(value)
    if isinstance(value, msgspec.Struct):
        return type(value)(**{name: _make_storable(getattr(value, name)) for name in value.__struct_fields__})
    if isinstance(value, dict):
        return {_make_storable(key): _make_storable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_make_storable, value))
    return value


RUN_DIRECTORY = 4
"""`format` in `run.json`: for all files of a run."""
JSON = 2
"""`format` in every document that `--json` prints, and in `report.json`."""
RECORDING = 1
"""`format` in every line that `--record` writes."""
PROTOCOLS = 2
"""The values that a plug-in may declare as its `protocol_version`."""


class FormatNumber(Struct, frozen=True):
    """The part of a document that is read first, because another format may have other keys."""

    format: int = 1
    """Documents written before there were numbers have format 1."""


def format_too_new(what: str, number: object, known: int) -> str:
    """Return the message for a format that this version does not support."""
    return f"{what} has format {number}; this version of Holdfast reads {known}"
