"""What a model wrote, taken out of its reply."""

from __future__ import annotations

import re

import msgspec

_FENCE = re.compile(r"```[\w-]*\n(.*?)```", re.DOTALL)
_NUMBERED = re.compile(r"^[^\S\n]*(?:\d{1,3}[.)]|[-*•])[^\S\n]+(.+)$", re.MULTILINE)


def replies(text: str) -> list[str]:
    """The texts of a reply: a JSON list, by itself or in an object, else the items of a numbered list."""
    fenced = _FENCE.search(text)
    plain = (fenced[1] if fenced else text).strip()
    try:
        found = msgspec.json.decode(plain)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return [_unquoted(item.strip()) for item in _NUMBERED.findall(plain)]
    if isinstance(found, dict):
        found = next((value for value in found.values() if isinstance(value, list)), list(found.values()))
    if not isinstance(found, list):
        return []
    return [item.strip() for item in found if isinstance(item, str)]


def _unquoted(item: str) -> str:
    return item[1:-1] if len(item) > 1 and item[0] == item[-1] == '"' else item
