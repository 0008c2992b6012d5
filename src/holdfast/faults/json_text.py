"""JSON text: opened as data, and written back in the style it had."""

from __future__ import annotations

import json
import re
from typing import Any

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_INDENT = re.compile(r"[\[{]\n([ \t]+)")


def parse(text: str) -> Any:
    """The object or array that the text holds, or None: a lone number or word is just text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def dump(data: Any) -> str:
    """Data as JSON text, whatever it holds."""
    return json.dumps(data, ensure_ascii=False, default=str)


def dump_like(data: Any, text: str) -> str:
    """Data as JSON text with the indent, the spacing and the margins of `text`."""
    indent = _INDENT.search(text)
    body = json.dumps(
        data,
        ensure_ascii=text.isascii() and "\\u" in text,
        indent=indent[1] if indent else None,
        separators=_separators(text, indented=indent is not None),
        default=str,
    )
    stripped = text.strip()
    start = text.index(stripped)
    return text[:start] + body + text[start + len(stripped) :]


def _separators(text: str, *, indented: bool) -> tuple[str, str]:
    signs = _STRING.sub('""', text)
    colon = ":" if re.search(r":\S", signs) else ": "
    tight = re.search(r",\S", signs) or ("," not in signs and colon == ":")
    return "," if indented or tight else ", ", colon
