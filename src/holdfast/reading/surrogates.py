"""Characters that JSON writes as two escapes: `json.dumps` gives an emoji as a surrogate pair, which YAML refuses.

Each pair is read as two characters of a private range, written with as many letters, so that every place in the file
stays what it is. Then they are put together again.
"""

from __future__ import annotations

import re

_PAIR = r"(?<!\\)((?:\\\\)*)\\u[dD]([89abAB][0-9a-fA-F]{2})\\u[dD]([c-fC-F][0-9a-fA-F]{2})"
_STAND_INS = "[\ue000-\ue3ff][\ue400-\ue7ff]"
_WRITTEN = r"\\u[eE][0-3][0-9a-fA-F]{2}\\u[eE][4-7][0-9a-fA-F]{2}"
_AWAY = 0xE000 - 0xD800


def has_pairs(text: str) -> bool:
    """Whether an escaped surrogate pair is in it."""
    return re.search(_PAIR, text) is not None


def with_stand_ins(text: str) -> str:
    """The text with every pair as two escapes that YAML reads, of the same length."""
    return re.sub(_PAIR, lambda found: f"{found[1]}\\u{_moved(found[2])}\\u{_moved(found[3])}", text)


def _moved(digits: str) -> str:
    return f"{int(f'd{digits}', 16) + _AWAY:04x}"


def put_together(value: str) -> str:
    """A value in double quotes that was read from such a text."""
    return re.sub(_STAND_INS, lambda found: _character(*map(ord, found[0])), value)


def as_written(value: str) -> str:
    """A value without double quotes, where a backslash is a backslash: as the file has it."""
    return re.sub(_WRITTEN, lambda found: _back(found[0][2:6]) + _back(found[0][8:]), value)


def _back(digits: str) -> str:
    return f"\\u{int(digits, 16) - _AWAY:04x}"


def _character(high: int, low: int) -> str:
    return chr(0x10000 + ((high - 0xE000) << 10) + (low - 0xE400))
