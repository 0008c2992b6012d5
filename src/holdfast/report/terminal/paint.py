"""Colour for a terminal, or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

Paint: TypeAlias = Callable[[str, str], str]
"""`paint(text, style)`: the text in that style."""

_CODES: Mapping[str, str] = {
    "pass": "32",
    "fail": "1;31",
    "error": "1;35",
    "unproven": "33",
    "n/a": "2",
    "dim": "2",
    "bold": "1",
    "PASS": "1;32",
    "FAIL": "1;31",
    "ERROR": "1;35",
    "INTERRUPTED": "1;35",
    "UNPROVEN": "1;33",
    "warning": "33",
}


def get_painter(color: bool) -> Paint:
    """Return a Paint that colours, or one that returns the text unchanged."""
    return _paint if color else _return_plain


def _paint(text: str, style: str) -> str:
    code = _CODES.get(style)
    return f"\x1b[{code}m{text}\x1b[0m" if code and text else text


def _return_plain(text: str, style: str) -> str:
    return text
