"""Detects regexes whose backslashes were written twice."""

from __future__ import annotations

import re

_LETTERS, _SIGNS = "dwsbDWSB", r".$^*+?()\[\]{}|/-"
_TWICE = rf"(?<!\\)\\\\(?=[{_LETTERS}{_SIGNS}])"
_SURELY_TWICE = re.compile(rf"(?<!\\)\\\\(?:[{_LETTERS}](?![A-Za-z])|[{_SIGNS}])")
r"""Excludes `C:\\Windows` and `C:\\dir`: a letter that begins a word may follow a real backslash."""
_SET = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_LOST_IN_SET = re.compile(r"\\\\[dwsDWS]")


def undouble_backslashes(pattern: str) -> str:
    """Return the pattern with one backslash where two precede a character that one would escape."""
    return re.sub(_TWICE, r"\\", pattern)


def is_doubled(pattern: str) -> bool:
    """Whether the pattern certainly looks for backslashes that were meant as escapes."""
    # In a set, `[\\$]` still has the `$`, and `[\\]` is how a backslash itself is written. `[\\d]` has lost its digits.
    sets = _SET.findall(pattern)
    return any(map(_LOST_IN_SET.search, sets)) or _SURELY_TWICE.search(_SET.sub("x", pattern)) is not None
