"""The user's regexes: compiled once, searched under a time limit, and told where they can match nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from holdfast.checks.wording import shorten
from holdfast.errors import HarnessError, NothingToJudge
from holdfast.reading.backslashes import undoubled

LIMIT_S = 2.0
DOUBLED = "its backslashes are doubled"
END_SIGN = "$ is the end of the text"
START_SIGN = "^ is the start of the text"
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
    return _Dead(why) if (why := why_never(pattern, flags)) else made


class _Dead:
    """Stands where a pattern would that can never match: that it does not is no news."""

    def __init__(self, why: str) -> None:
        self._why = why

    def search(self, text: str, timeout: float, concurrent: bool) -> Any:
        raise NothingToJudge(self._why)


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


def why_never(pattern: str, flags: str = "") -> str | None:
    """Why nothing can ever match the pattern, with the mended one if it is known; None if something could."""
    from holdfast.checks.never_matches import never_matches

    if not never_matches(pattern, flags):
        return None
    way_out = ""
    for why, mended in ((DOUBLED, undoubled(pattern)), *_escaped_signs(pattern)):
        if mended != pattern and _usable(mended, flags) and not never_matches(mended, flags):
            way_out = f": {why}; write {shorten(mended, 300)}"
            break
    return f"the pattern {shorten(pattern, 100)} can never match, so this rule proves nothing{way_out}"


def _escaped_signs(pattern: str) -> Iterator[tuple[str, str]]:
    """The pattern with the signs escaped that were probably meant as they are, and what they mean unescaped."""
    yield END_SIGN, _escaped(pattern, r"\$(?![|)]|$)")
    yield START_SIGN, _escaped(pattern, r"(?<=.)(?<![(|])\^")


def _escaped(pattern: str, sign: str) -> str:
    """Escapes what is found of the sign; an escape or a set is left as it is."""
    found = rf"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|({sign})"
    return re.sub(found, lambda match: match[1] or "\\" + match[2], pattern, flags=re.DOTALL)


def _usable(pattern: str, flags: str) -> bool:
    import regex

    try:
        return bool(_compiled(pattern, flags))
    except (regex.error, ValueError, OverflowError, RecursionError):
        return False


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
