"""Reads JSON of unknown shape without raising, and writes it without failing."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from holdfast.model.codec import encode, to_builtins

_UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
_LARGEST = 2**53
"""Larger counts are nonsense, and some JSON readers would change them."""


def parse_json(data: bytes | str, fallback: Any = None) -> Any:
    """Return the value of a JSON text; `fallback` if it is not JSON."""
    try:
        return msgspec.json.decode(data)
    except _UNREADABLE:
        pass
    try:  # only this parser accepts the lone surrogates that some servers send
        return json.loads(data)
    except _UNREADABLE:
        return fallback


def dump_json(value: Any) -> bytes:
    """Return a value as JSON on one line, for any text in it."""
    try:
        return encode(value)
    except (UnicodeEncodeError, OverflowError):  # `default` decodes the ready-made JSON inside the value
        plain = to_builtins(value)
        return json.dumps(plain, separators=(",", ":"), default=lambda raw: json.loads(bytes(raw))).encode()


def to_json_text(value: Any) -> str:
    """Return a value as text: text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else dump_json(value).decode()


def read_arguments(value: Any, fallback: str = "{}") -> str:
    """Return the arguments of a call as JSON text; `fallback` if there are none."""
    return fallback if value is None else to_json_text(value)


def as_raw_json(text: str) -> Any:
    """Return a JSON text, ready to be embedded in a larger value; other text, or a JSON string, stays text."""
    if text.lstrip()[:1] == '"':
        return text
    try:
        return msgspec.Raw(msgspec.json.format(text.encode(), indent=-1))
    except _UNREADABLE:
        return text


def as_raw_object(text: str) -> Any:
    """Return a JSON object, ready to be embedded in a larger value.

    None if the text is not an object. Empty text is `{}`.
    """
    raw = as_raw_json(text) if text.strip() else msgspec.Raw(b"{}")
    return raw if isinstance(raw, msgspec.Raw) and bytes(raw)[:1] == b"{" else None


def as_dict(value: Any) -> dict[str, Any]:
    """Return the value if it is an object, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return the value if it is a list, otherwise an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """Return the value if it is text, otherwise empty text."""
    return value if isinstance(value, str) else ""


def as_count(value: Any) -> int:
    """Return the value if it is a plausible count, otherwise 0."""
    return as_optional_count(value) or 0


def as_optional_count(value: Any) -> int | None:
    """Return the value if it is a plausible count, otherwise None."""
    finite = as_number(value)
    return int(finite) if finite is not None and 0 <= finite <= _LARGEST else None


def as_number(value: Any) -> float | None:
    """Return the value if it is a finite number, otherwise None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if -1e300 < value < 1e300 else None


def read_text(content: Any) -> str:
    """Return the text of a content that is text or a list of parts, one line per part."""
    if isinstance(content, str):
        return content
    return "\n".join([text for part in as_list(content) if (text := _read_part(part))])


def replace_text(content: Any, text: str, kind: str = "text") -> Any:
    """Return a content with another text. In a list, the first text part is replaced and other kinds of parts stay."""
    if not isinstance(content, list):
        return text
    first = next((part for part in content if _read_part(part)), None)
    new = {**first, "text": text} if isinstance(first, dict) else {"type": kind, "text": text}
    at = next((i for i, part in enumerate(content) if part is first), 0)
    return [*content[:at], new, *[part for part in content[at:] if not _read_part(part)]]


def _read_part(part: Any) -> str:
    return part if isinstance(part, str) else as_text(as_dict(part).get("text"))
