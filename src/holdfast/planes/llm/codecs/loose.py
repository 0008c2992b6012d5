"""Reads JSON of unknown shape without raising, and writes it without failing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.model.codec import encode, to_builtins

_UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
_LARGEST = 2**53
"""Larger counts are nonsense, and some JSON readers would change them."""


def parse(data: bytes | str, otherwise: Any = None) -> Any:
    """The value of a JSON text; `otherwise` if it is not JSON."""
    try:
        return msgspec.json.decode(data)
    except _UNREADABLE:
        pass
    try:  # only this parser accepts the lone surrogates that some servers send
        return json.loads(data)
    except _UNREADABLE:
        return otherwise


def dump(value: Any) -> bytes:
    """A value as JSON on one line, for any text in it."""
    try:
        return encode(value)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(to_builtins(value), separators=(",", ":"), default=_decoded).encode()


def json_text(value: Any) -> str:
    """A value as text: text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else dump(value).decode()


def as_json(text: str) -> Any:
    """A JSON text, ready to be embedded in a larger value; text that is not JSON, or a JSON string, stays text."""
    if text.lstrip()[:1] == '"':
        return text
    try:
        return msgspec.Raw(msgspec.json.format(text.encode(), indent=-1))
    except _UNREADABLE:
        return text


def as_object(text: str) -> Any:
    """A JSON object, ready to be embedded in a larger value; None if the text is not an object. Empty text is `{}`."""
    raw = as_json(text) if text.strip() else msgspec.Raw(b"{}")
    return raw if isinstance(raw, msgspec.Raw) and bytes(raw)[:1] == b"{" else None


def fields(data: Mapping[str, Any], **wanted: Any) -> list[Any]:
    """The values of these fields, in order, each of the requested type.

    `name=""`, `name=[]` or `name={}`: a value of that type, or this default. `name=int`: a plausible count,
    `name=float`: a finite number, or None.
    """
    values: list[Any] = []
    for name, kind in wanted.items():
        value = data.get(name)
        if kind is int:
            values.append(whole(value))
        elif kind is float:
            values.append(number(value))
        else:
            values.append(value if isinstance(value, type(kind)) else kind)
    return values


def obj(value: Any) -> dict[str, Any]:
    """The value if it is an object, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """The value if it is a list, otherwise an empty one."""
    return value if isinstance(value, list) else []


def word(value: Any) -> str:
    """The value if it is text, otherwise empty text."""
    return value if isinstance(value, str) else ""


def count(value: Any) -> int:
    """The value if it is a plausible count, otherwise 0."""
    return whole(value) or 0


def whole(value: Any) -> int | None:
    """The value if it is a plausible count, otherwise None."""
    if value is None:
        return None
    if type(value) is int:
        return value if 0 <= value <= _LARGEST else None
    as_number = number(value)
    return int(as_number) if as_number is not None and 0 <= as_number <= _LARGEST else None


def number(value: Any) -> float | None:
    """The value if it is a finite number, otherwise None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if -1e300 < value < 1e300 else None


def text_in(content: Any) -> str:
    """The text of a content that is text or a list of parts, one line per part."""
    if isinstance(content, str):
        return content
    return "\n".join([text for part in items(content) if (text := _part(part))])


def with_text_in(content: Any, text: str, kind: str = "text") -> Any:
    """A content with another text. In a list, the first text part is replaced and other kinds of parts stay."""
    if not isinstance(content, list):
        return text
    first = next((part for part in content if _part(part)), None)
    new = {**first, "text": text} if isinstance(first, dict) else {"type": kind, "text": text}
    at = next((i for i, part in enumerate(content) if part is first), 0)
    return [*content[:at], new, *[part for part in content[at:] if not _part(part)]]


def _part(part: Any) -> str:
    return part if isinstance(part, str) else word(obj(part).get("text"))


def _decoded(value: Any) -> Any:
    """Encodes ready-made JSON inside a value, which the encoder does not support by itself."""
    return json.loads(bytes(value))
