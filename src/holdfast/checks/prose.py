"""Telling plain text from a regular expression."""

from __future__ import annotations

import re

_SURELY_REGEX = re.compile(r"[\\\[\]{}|^$*+]|\(\?|\.\?|\?\?|\)\?")
_SIGNS = {
    ".": re.compile(r"\w\.(?=[\w\s\"')]|$)"),
    # 'colou?r' and 'secrets?' are regexes; a question has words before it.
    "?": re.compile(r"\s.*\w\?(?=[\s\"')]|$)"),
    "(": re.compile(r"\([^()]*\)"),
}


def unescaped(pattern: str) -> str:
    """The signs among `. ? (` that look meant as themselves; empty if the pattern looks like a regex."""
    if _SURELY_REGEX.search(pattern):
        return ""
    return "".join(sign for sign, meant in _SIGNS.items() if meant.search(pattern))
