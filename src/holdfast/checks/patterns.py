"""The user's regexes: compiled once, searched under a time limit."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from holdfast.errors import HarnessError

LIMIT_S = 2.0


@lru_cache(maxsize=4096)
def compiled(pattern: str, flags: str) -> Any:
    """The pattern, compiled with flags given as letters: `s` DOTALL, `i` IGNORECASE."""
    import warnings

    import regex

    wanted = {"s": regex.DOTALL, "i": regex.IGNORECASE}
    with warnings.catch_warnings():
        # The library warns of what may change in later versions of itself: nothing a user can act on.
        warnings.simplefilter("ignore")
        return regex.compile(pattern, sum(wanted[letter] for letter in flags))


def search(pattern: str, text: str, flags: str) -> tuple[int, int] | None:
    """The span of the first match, or None; HarnessError if it takes over 2 s."""
    try:
        match = compiled(pattern, flags).search(text, timeout=LIMIT_S, concurrent=True)
    except TimeoutError as slow:
        raise HarnessError("pattern took over 2 s") from slow
    return None if match is None else match.span()


def fault_in(pattern: str, flags: str = "") -> str | None:
    """Why the pattern cannot be used, or None."""
    import regex

    try:
        compiled(pattern, flags)
    except (regex.error, ValueError, OverflowError, RecursionError) as bad:
        return f"not a regular expression: {bad or type(bad).__name__}"
    return None
