"""Values of bounded size: evidence may be a table of a million rows, and an answer as long as a book."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from holdfast.model.codec import encode, make_storable, to_builtins

TEXT, ITEMS, DEEP = 64_000, 1_000, 12
"""Characters of one text, items of one list or object, and nesting depth."""
_NUMBERS = (int, float)
MAX_TEXT = 20_000
"""Characters of one answer or output in a page; the run directory has the rest, and the page says so."""


def shorten_value(value: Any) -> Any:
    """Return the value without its oversized parts, with a note where something is left out."""
    return _shorten(to_builtins(value), DEEP)


def fit_value(value: Any, most: int) -> Any:
    """Return the value within so many characters: a larger one becomes the beginning of its JSON."""
    short = shorten_value(value)
    if isinstance(short, str):
        return cut(short, most)
    text = encode_json(short).decode()
    return short if len(text) <= most else cut(text, most)


def encode_json(value: Any) -> bytes:
    """JSON; lone surrogates, which no encoding can represent, are replaced."""
    try:
        return encode(value)
    except UnicodeEncodeError:
        return encode(make_storable(value))


def pick(value: Struct, names: str) -> dict[str, Any]:
    """Return these fields of a value, in this order: `pick(cell, "outcome reason")`."""
    fields = asdict(value)
    return {name: fields[name] for name in names.split()}


def drop_empty(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document without empty or false fields: in ten thousand documents they would be most of a page."""
    return {name: value for name, value in document.items() if value or value.__class__ in _NUMBERS}


def _shorten(value: Any, deep: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= TEXT else f"{value[:TEXT]}\n[cut here: {len(value) - TEXT} more characters]"
    if isinstance(value, int) and abs(value) >= 1 << 53 and not isinstance(value, bool):
        return str(value)  # a browser would show another number
    if not isinstance(value, dict | list):
        return value
    if not deep:
        return "[left out: nested too deeply]"
    if isinstance(value, dict):
        fields = {str(key): _shorten(inner, deep - 1) for key, inner in list(value.items())[:ITEMS]}
        return fields if len(value) <= ITEMS else {**fields, "…": f"[{len(value) - ITEMS} more are left out]"}
    items = [_shorten(inner, deep - 1) for inner in value[:ITEMS]]
    return items if len(value) <= ITEMS else [*items, f"[{len(value) - ITEMS} more are left out]"]


def cut(text: str, most: int = MAX_TEXT) -> str:
    """Return a long text without its end, and a note where the end is."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[cut here: {len(text) - most} more characters are in the run directory]"


def to_utf16_span(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span in UTF-16 units, as a browser counts."""
    if text.isascii():
        return start, end
    return _count_units(text[:start]), _count_units(text[:end])


def _count_units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
