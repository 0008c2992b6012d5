"""Values found and values wanted, compared as JSON: a number is a number, a boolean is no number, text is exact."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from holdfast.model.codec import encode

_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")


def same(found: Any, wanted: Any) -> bool:
    """Whether two JSON values are equal; 1 is 1.0, and neither true nor "1"."""
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(found, int | float) and isinstance(wanted, int | float):
        return found == wanted
    if isinstance(found, list | tuple) and isinstance(wanted, list | tuple):
        return len(found) == len(wanted) and all(same(a, b) for a, b in zip(found, wanted, strict=True))
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(same(found[key], wanted[key]) for key in found)
    return type(found) is type(wanted) and bool(found == wanted)


def as_number(value: Any) -> int | float | None:
    """The value as a number, also if it is one written as text; None if it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str) or len(value) > 400 or not _NUMBER.fullmatch(value):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def has_part(value: Any, wanted: Any, texts: Iterable[str] = ()) -> bool:
    """A key of a map, a member of a list, a substring of a scalar's text; or a substring of one of the texts."""
    if isinstance(value, dict):
        found = isinstance(wanted, str) and wanted in value
    elif isinstance(value, list):
        found = any(same(item, wanted) for item in value)
    else:
        found = as_text(wanted) in as_text(value)
    return found or any(as_text(wanted) in text for text in texts)


def as_text(value: Any) -> str:
    """The value as a regex sees it: text as it is, the rest as JSON."""
    return value if isinstance(value, str) else encode(value).decode()
