"""Text for a screen: untrusted characters are shown and never sent, widths are counted, and colour is added."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import TypeAlias

# These patterns are strings: few runs need them, and `re` caches what it compiles. They cover C0 and C1 controls, bidi
# overrides, line separators, invisible tags, lone surrogates and non-characters.
_HIDDEN = (
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_COMMAND = r"(?m)^[^\S\n]*(?=::)|##(?=\[)"


def _show(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def make_visible(text: str, *, keep: str = "") -> str:
    """Return the text with every control, bidi and invisible character spelled out, except those in `keep`."""
    if text.isprintable():
        return text
    return re.sub(_HIDDEN, lambda m: m[0] if m[0] in keep else _show(m), text)


def to_one_line(text: str) -> str:
    """Return the text on one line: line breaks become ↵, other hidden characters are spelled out."""
    if text.isprintable():
        return text.strip()
    return make_visible(re.sub(r"\s*\r?\n\s*", " ↵ ", text.strip()).replace("\t", " "))


def escape_commands(text: str) -> str:
    """Return the text without workflow commands, which GitHub's runner would execute: an answer may contain one."""
    return re.sub(_COMMAND, lambda match: match[0] + "\\", text)


def count_columns(text: str) -> int:
    """Return the width of the text on a terminal, in columns."""
    if text.isascii():
        return len(text)
    return sum(map(_count_char_columns, text))


def _count_char_columns(char: str) -> int:
    # A combining mark is drawn over the character before it, and an East Asian wide character takes two columns. A
    # zero-width joiner and a variation selector only change how their neighbours look.
    if unicodedata.combining(char) or char in "\u200d\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def shorten(text: str, room: int) -> str:
    """Return the text in at most `room` columns, cut with … if it is longer."""
    if count_columns(text) <= room:
        return text
    characters, used = [], 1
    for char in text:
        used += _count_char_columns(char)
        if used > room:
            break
        characters.append(char)
    return "".join(characters).rstrip() + "…" if room > 0 else ""


def pad(text: str, room: int, *, centre: bool = False) -> str:
    """Return the text padded with blanks to `room` columns."""
    gap = max(0, room - count_columns(text))
    before = gap // 2 if centre else 0
    return " " * before + text + " " * (gap - before)


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
