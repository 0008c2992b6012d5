"""The user's regexes: compiled once, and searched under a time limit. A doubly escaped one may match nothing."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from holdfast.checks.wording import shorten
from holdfast.errors import HarnessError, NothingToJudge
from holdfast.reading.backslashes import undoubled

LIMIT_S = 2.0
_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
"""An escape, a set or a sign."""
_WHOLE_GROUP = re.compile(r"\((?:\?:)?((?:[^()\\]|\\.)*)\)", re.DOTALL)
_ONE_CHARACTER = re.compile(r"\[.*\]|\\[dw\W]|[^()|^$.{*?+\\\s#]| ", re.DOTALL)
_WAYS_OUT = (
    ("missing )", "close the (, or write \\( for the sign itself"),
    ("unbalanced parenthesis", "write \\) for the sign itself"),
    ("unterminated character set", "close the [, or write \\[ for the sign itself"),
    ("nothing to repeat", "* + and ? repeat what stands before them; write \\* for the sign itself"),
    ("bad escape", "write \\\\ for a backslash itself"),
)


@lru_cache(maxsize=4096)
def compiled(pattern: str, flags: str) -> Any:
    """The pattern, compiled with flags given as letters: `s` DOTALL, `i` IGNORECASE."""
    made = _compiled(pattern, flags)
    return _Dead(why) if (why := why_never(pattern)) else made


class _Dead:
    """Stands where a pattern would that can never match: that it does not is no news."""

    def __init__(self, why: str) -> None:
        self._why = why

    def search(self, text: str, timeout: float, concurrent: bool) -> Any:
        raise NothingToJudge(self._why, "pattern-cannot-match")


def _compiled(pattern: str, flags: str) -> Any:
    import warnings

    import regex

    wanted = {"s": regex.DOTALL, "i": regex.IGNORECASE}
    with warnings.catch_warnings():
        # The library warns of what may change in later versions of itself: nothing a user can act on.
        warnings.simplefilter("ignore")
        return regex.compile(pattern, sum(wanted[letter] for letter in flags))


def search(pattern: str, text: str, flags: str) -> tuple[int, int] | None:
    """The span of the first match, or None; HarnessError if it takes over 2 s, NothingToJudge if nothing can match."""
    try:
        match = compiled(pattern, flags).search(text, timeout=LIMIT_S, concurrent=True)
    except TimeoutError as slow:
        raise HarnessError("pattern took over 2 s") from slow
    return None if match is None else match.span()


@lru_cache(maxsize=4096)
def why_never(pattern: str) -> str | None:
    """Why a doubly escaped pattern can never match, with the corrected one; None for every other pattern.

    Document 000 prints `\\\\$[\\\\d,]+` in single quotes: a backslash, then the end of the text, then more of it.
    """
    corrected = undoubled(pattern)
    if corrected == pattern or "(?x" in pattern or not _continues_past_end(pattern):
        return None
    rule = f"the pattern {shorten(pattern, 100)} can never match, so this rule proves nothing"
    return f"{rule}: its backslashes are doubled; write {shorten(corrected, 300)}"


def _continues_past_end(pattern: str) -> bool:
    """Whether every match needs a character behind a doubly escaped `$`; groups may be optional and are not read."""
    while group := _WHOLE_GROUP.fullmatch(pattern):  # `(\\\\$5)` is as dead as what is in it
        pattern = group[1]
    parts = [*_PART.findall(pattern), "", ""]
    depth, found = 0, False
    for part, sign, following, quantifier in zip(parts, parts[1:], parts[2:], [*parts[3:], ""], strict=False):
        depth += (part == "(") - (part == ")")
        if depth == 0 and part == "|":
            return False
        if depth == 0 and (part, sign) == ("\\\\", "$") and quantifier not in ("*", "?", "{"):
            found = found or _needs_character(following)
    return found


def _needs_character(part: str) -> bool:
    """Whether the part matches one character, and not the line break that `$` allows at the end of a text."""
    known = _ONE_CHARACTER.fullmatch(part) and fault_in(part) is None
    return bool(known) and _compiled(part, "").fullmatch("\n") is None


def fault_in(pattern: str, flags: str = "") -> str | None:
    """Why the pattern cannot be used, or None."""
    import regex

    try:
        _compiled(pattern, flags)
    except (regex.error, ValueError, OverflowError, RecursionError) as bad:
        said = str(bad) or type(bad).__name__
        way_out = next((f": {words}" for start, words in _WAYS_OUT if said.startswith(start)), "")
        return f"not a regular expression: {said}{way_out}"
    return None
