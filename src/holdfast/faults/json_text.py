"""JSON text: parses it, and writes it back in its original style."""

from __future__ import annotations

import json
import re
from typing import Any

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_INDENT = re.compile(r"[\[{]\n([ \t]+)")


def parse_json(text: str) -> Any:
    """Return the object or array that the text holds; None for a lone number or word."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def dump_json(data: Any) -> str:
    """Return data as JSON text; values that JSON cannot hold become text."""
    return json.dumps(data, ensure_ascii=False, default=str)


def dump_like(data: Any, text: str) -> str:
    """Return data as JSON text with the indentation, spacing and margins of `text`."""
    indent = _INDENT.search(text)
    body = json.dumps(
        data,
        ensure_ascii=text.isascii() and "\\u" in text,
        indent=indent[1] if indent else None,
        separators=_detect_separators(text, indented=indent is not None),
        default=str,
    )
    stripped = text.strip()
    start = text.index(stripped)
    return text[:start] + body + text[start + len(stripped) :]


def _detect_separators(text: str, *, indented: bool) -> tuple[str, str]:
    signs = _STRING.sub('""', text)
    colon = ":" if re.search(r":\S", signs) else ": "
    tight = re.search(r",\S", signs) or ("," not in signs and colon == ":")
    return "," if indented or tight else ", ", colon
