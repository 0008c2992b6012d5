"""The user's regexes: compiled once, and searched with a time limit. A doubly escaped regex proves nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from typing import Any

from holdfast.checks.wording import shorten
from holdfast.errors import HarnessError, NothingToJudge
from holdfast.reading.words import is_doubled, undouble_backslashes

LIMIT_S = 2.0
_WAYS_OUT = (
    ("missing )", "close the (, or write \\( for the character itself"),
    ("unbalanced parenthesis", "write \\) for the character itself"),
    ("unterminated character set", "close the [, or write \\[ for the character itself"),
    ("nothing to repeat", "* + and ? repeat the item before them; write \\* for the character itself"),
    ("bad escape", "write \\\\ for a backslash itself"),
)


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str, flags: str) -> Any:
    """Return the pattern, compiled with flags given as letters: `s` DOTALL, `i` IGNORECASE."""
    regex = _compile_regex(pattern, flags)
    return _DeadPattern(why) if (why := explain_dead_pattern(pattern)) else regex


class _DeadPattern:
    """Replaces a doubly escaped pattern: whether it matches says nothing about the answer."""

    def __init__(self, why: str) -> None:
        self._why = why

    def search(self, text: str, timeout: float, concurrent: bool) -> Any:
        raise NothingToJudge(self._why, code="pattern-cannot-match")


def _compile_regex(pattern: str, flags: str) -> Any:
    import regex

    wanted = {"s": regex.DOTALL, "i": regex.IGNORECASE}
    with warnings.catch_warnings():
        # The library warns of changes in its later versions: nothing a user can act on.
        warnings.simplefilter("ignore")
        return regex.compile(pattern, sum(wanted[letter] for letter in flags))


def search(pattern: str, text: str, flags: str) -> tuple[int, int] | None:
    """Return the span of the first match, or None.

    Raise HarnessError after 2 s, NothingToJudge if the pattern is doubly escaped.
    """
    try:
        # Patterns come from users, and some take exponential time on some answers. The `regex` library can stop after a
        # time; the standard library cannot. `concurrent` releases the interpreter meanwhile.
        match = compile_pattern(pattern, flags).search(text, timeout=LIMIT_S, concurrent=True)
    except TimeoutError as slow:
        raise HarnessError("pattern took over 2 s", code="check-timeout") from slow
    return None if match is None else match.span()


@lru_cache(maxsize=4096)
def explain_dead_pattern(pattern: str) -> str | None:
    """Return why a doubly escaped pattern cannot find what it means, and the corrected one; None for other patterns.

    Document 000 prints `\\\\$[\\\\d,]+` in single quotes: a backslash, then the end of the text, then more of it.
    """
    corrected = undouble_backslashes(pattern)
    if not is_doubled(pattern) or find_pattern_error(corrected) is not None:
        return None
    rule = f"the pattern {shorten(pattern, 100)} looks for backslashes, so this rule proves nothing"
    return f"{rule}: its backslashes are doubled; write {shorten(corrected, 300)}, or [\\\\] for a backslash itself"


def find_pattern_error(pattern: str, flags: str = "") -> str | None:
    """Return why the pattern cannot be used, or None."""
    import regex

    try:
        _compile_regex(pattern, flags)
    except (regex.error, ValueError, OverflowError, RecursionError) as bad:
        engine_error = str(bad) or type(bad).__name__
        way_out = next((f": {words}" for start, words in _WAYS_OUT if engine_error.startswith(start)), "")
        return f"not a regular expression: {engine_error}{way_out}"
    return None


def find_pattern_problem(setting: str, pattern: str | None) -> Iterator[tuple[str, str]]:
    """Yield the setting and why its pattern cannot be used, if there is one that cannot."""
    if pattern is not None and (fault := find_pattern_error(pattern)):
        yield setting, fault


def lint_pattern(setting: str, pattern: str | None) -> Iterator[tuple[str, str, str]]:
    """Yield the lint of a setting whose pattern can never match."""
    if pattern is not None and find_pattern_error(pattern) is None and (why := explain_dead_pattern(pattern)):
        yield "lint-never-matches", setting, why


def find_folded(text: str, value: str) -> tuple[int, int] | None:
    """Return the span of the first occurrence of `value` in `text`, ignoring case."""
    folded, wanted = text.casefold(), value.casefold()
    start = folded.find(wanted)
    if start < 0:
        return None
    end = start + len(wanted)
    # Folding only ever lengthens ('ß' becomes 'ss'), so equal lengths mean equal positions.
    same = text.isascii() or len(folded) == len(text)
    return (start, end) if same else _unfold(text, start, end)


def _unfold(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span in `text` that covers the span of its folded form."""
    ends = list(accumulate(len(c.casefold()) for c in text))
    first = next((i for i, e in enumerate(ends) if e > start), len(text))
    last = next((i + 1 for i, e in enumerate(ends) if e >= end), len(text))
    return first, max(first, last)
