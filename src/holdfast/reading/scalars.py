"""What a plain YAML scalar means: the JSON-like core, without YAML 1.1's surprises.

`on` and `no` are text, so is `12:30`, a date, and a number with a leading zero.
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
"""Larger numbers are text, so that an id of many digits stays what it is and JSON can carry every value."""

_TAGS: dict[str, NodeKind] = {"str": "text", "int": "int", "float": "float", "bool": "bool", "null": "null"}
STANDARD = "tag:yaml.org,2002:"


def plain(text: str) -> tuple[NodeKind, Any]:
    """The kind and value of an unquoted scalar."""
    if text in _NULL:
        return "null", None
    if text in _BOOL:
        return "bool", _BOOL[text]
    if text[0] in "+-.0123456789" and len(text) <= _MAX_DIGITS:
        return _number(text)
    return "text", text


def _number(text: str) -> tuple[NodeKind, Any]:
    if re.fullmatch(_INT, text) or re.fullmatch(_BASED, text):
        value = int(text, 10 if re.fullmatch(_INT, text) else 0)
        return ("int", value) if -_LARGEST <= value <= _LARGEST else ("text", text)
    if re.fullmatch(_FLOAT, text):
        return "float", float(text)
    if re.fullmatch(_SPECIAL, text):
        return "float", float(text.replace(".", "").lower())
    return "text", text


def tagged(tag: str, text: str) -> tuple[NodeKind, Any] | None:
    """The kind and value of a scalar with an explicit tag; None if the tag cannot be honoured."""
    wanted = _TAGS.get(tag.removeprefix(STANDARD))
    if wanted == "text" or tag == "!":
        return "text", text
    kind, value = plain(text)
    if wanted == "float" and kind == "int":
        return "float", float(value)
    return (kind, value) if wanted == kind else None
