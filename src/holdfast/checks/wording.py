"""Words for reasons: values cut to a readable length, and suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from holdfast.model.shorten import shorten as without_middle
from holdfast.model.shorten import strip_terminal_codes

LIMIT = 80
"""Maximum length of a value: two of them and a sentence around them stay under 200 characters."""


def shorten(text: str, limit: int = LIMIT) -> str:
    """Return the text on one line, cut in the middle if longer than `limit`, in valid UTF-8."""
    text = without_middle(strip_terminal_codes(text), limit)
    if text.isascii() and text.isprintable():
        return text
    # Decoded JSON may contain half a surrogate pair, which no codec can write.
    text = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else " " if c.isspace() else "·" for c in text)


def suggest_choice(word: str, choices: Sequence[str]) -> str:
    """Return `did you mean x?` if one choice is close, otherwise the list of choices."""
    close = get_close_matches(word, choices, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(choices)}"
