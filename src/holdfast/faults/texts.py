"""Texts that faults use: JSON in its original style, other names of fields, and the phrases that ship as data."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from functools import cache
from importlib.resources import files
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


@cache
def read_texts(name: str) -> tuple[str, ...]:
    """Return the texts of `data/<name>.txt`, separated by lines of `---`."""
    source = (files("holdfast.faults") / "data" / f"{name}.txt").read_text("utf-8")
    return tuple(text.strip() for text in f"\n{source}\n".split("\n---\n"))


@cache
def read_pairs(name: str) -> tuple[tuple[str, str], ...]:
    """Return the lines `old => new` of `data/<name>.txt`."""
    lines = (line.partition(" => ") for text in read_texts(name) for line in text.splitlines())
    return tuple((old.strip(), new.strip()) for old, _, new in lines)


def rename_field(name: str, used: Collection[str] = ()) -> str:
    """Turn `total_price` into `totalPrice` and back; a single word gets `_value`. Never returns a name in `used`."""
    # The new name must be plausible, as in the next version of an API, and must not exist already: then the fault would
    # overwrite a field instead of renaming one.
    other = _restyle(name)
    while other in used or other == name:
        other += "_v2"
    return other


def _restyle(name: str) -> str:
    words = name.strip("_").split("_")
    if len(words) > 1:
        return words[0].lower() + "".join(word[:1].upper() + word[1:] for word in words[1:])
    if re.search(r"[a-z0-9][A-Z]", name):
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return f"{name}_value"
