"""The meaning of a plain YAML scalar: the JSON-like core, without YAML 1.1's surprises.

`on` and `no` are text, and so are `12:30`, a date, and a number with a leading zero.
"""

from __future__ import annotations

import re
from typing import Any

from holdfast.reading.node import NodeKind

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = r"[-+]?(?:0|[1-9][0-9]*(?:_[0-9]+)*)"
_BASED = r"0x[0-9a-fA-F]+|0o[0-7]+"
_FLOAT = r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?"
_SPECIAL = r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
_MAX_DIGITS = 400
_LARGEST = 2**63 - 1
"""Larger numbers are text, so an id of many digits stays unchanged and JSON can represent every value."""

_TAGS: dict[str, NodeKind] = {"str": "text", "int": "int", "float": "float", "bool": "bool", "null": "null"}
STANDARD = "tag:yaml.org,2002:"


def parse_plain(text: str) -> tuple[NodeKind, Any]:
    """Return the kind and value of an unquoted scalar."""
    if text in _NULL:
        return "null", None
    if text in _BOOL:
        return "bool", _BOOL[text]
    if text[0] in "+-.0123456789" and len(text) <= _MAX_DIGITS:
        return _parse_number(text)
    return "text", text


def _parse_number(text: str) -> tuple[NodeKind, Any]:
    if re.fullmatch(_INT, text) or re.fullmatch(_BASED, text):
        value = int(text, 10 if re.fullmatch(_INT, text) else 0)
        return ("int", value) if -_LARGEST <= value <= _LARGEST else ("text", text)
    if re.fullmatch(_FLOAT, text):
        return "float", float(text)
    if re.fullmatch(_SPECIAL, text):
        return "float", float(text.replace(".", "").lower())
    return "text", text


def parse_tagged(tag: str, text: str) -> tuple[NodeKind, Any] | None:
    """Return the kind and value of a scalar with an explicit tag; None if the tag is not supported."""
    wanted = _TAGS.get(tag.removeprefix(STANDARD))
    if wanted == "text" or tag == "!":
        return "text", text
    kind, value = parse_plain(text)
    if wanted == "float" and kind == "int":
        return "float", float(value)
    return (kind, value) if wanted == kind else None


# `json.dumps` writes an emoji as a surrogate pair, which YAML rejects. Each pair is read as two characters of a private
# range, written with as many letters, so every position in the file stays the same. Afterwards they are joined.
_PAIR = r"(?<!\\)((?:\\\\)*)\\u[dD]([89abAB][0-9a-fA-F]{2})\\u[dD]([c-fC-F][0-9a-fA-F]{2})"
_STAND_INS = "[\ue000-\ue3ff][\ue400-\ue7ff]"
_WRITTEN = r"\\u[eE][0-3][0-9a-fA-F]{2}\\u[eE][4-7][0-9a-fA-F]{2}"
_AWAY = 0xE000 - 0xD800


def has_pairs(text: str) -> bool:
    """Whether it contains an escaped surrogate pair."""
    return re.search(_PAIR, text) is not None


def replace_pairs(text: str) -> str:
    """Return the text with every pair as two escapes that YAML reads, of the same length."""
    return re.sub(_PAIR, lambda match: f"{match[1]}\\u{_move_digits(match[2])}\\u{_move_digits(match[3])}", text)


def _move_digits(digits: str) -> str:
    return f"{int(f'd{digits}', 16) + _AWAY:04x}"


def join_pairs(value: str) -> str:
    """Return a value in double quotes from such a text, with its pairs joined."""
    return re.sub(_STAND_INS, lambda match: _join_pair(*map(ord, match[0])), value)


def restore_pairs(value: str) -> str:
    """Return a value without double quotes, in which a backslash is literal: as in the file."""
    return re.sub(_WRITTEN, lambda match: _restore_escape(match[0][2:6]) + _restore_escape(match[0][8:]), value)


def _restore_escape(digits: str) -> str:
    return f"\\u{int(digits, 16) - _AWAY:04x}"


def _join_pair(high: int, low: int) -> str:
    return chr(0x10000 + ((high - 0xE000) << 10) + (low - 0xE400))
