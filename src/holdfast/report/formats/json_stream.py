"""JSON in pieces: a document whose long lists are produced while it is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from holdfast.model.codec import encode
from holdfast.report.safe import make_encodable

_STEP = b"  "


def encode_pieces(value: Any, indent: bytes = b"") -> Iterator[bytes]:
    """Yield the value as indented JSON, with the same bytes as in one piece; an iterator is written as a list, item by
    item.

    Maps are walked, so an iterator may be at any depth of them; every other value is one piece.
    """
    if isinstance(value, Iterator):
        yield from _encode_list(value, indent)
    elif isinstance(value, Mapping) and value:
        yield from _encode_map(value, indent)
    else:
        yield _encode_whole(value).replace(b"\n", b"\n" + indent)


def _encode_map(value: Mapping[str, Any], indent: bytes) -> Iterator[bytes]:
    inner, opening = indent + _STEP, b"{\n"
    for key, item in value.items():
        yield opening + inner + _encode_whole(key) + b": "
        yield from encode_pieces(item, inner)
        opening = b",\n"
    yield b"\n" + indent + b"}"


def _encode_list(items: Iterator[Any], indent: bytes) -> Iterator[bytes]:
    inner, opening = indent + _STEP, b"[\n"
    for item in items:
        # JSON strings contain no raw line breaks: whatever follows one is indentation.
        yield opening + inner + _encode_whole(item).replace(b"\n", b"\n" + inner)
        opening = b",\n"
    yield b"[]" if opening == b"[\n" else b"\n" + indent + b"]"


def _encode_whole(value: Any) -> bytes:
    try:
        data = encode(value)
    except UnicodeEncodeError:
        data = encode(_make_encodable(value))
    return msgspec.json.format(data, indent=len(_STEP))


def _make_encodable(value: Any) -> Any:
    if isinstance(value, str):
        return make_encodable(value)
    if isinstance(value, Mapping):
        return {make_encodable(str(key)): _make_encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_make_encodable(item) for item in value]
    return _make_encodable(msgspec.to_builtins(value)) if isinstance(value, msgspec.Struct) else value
