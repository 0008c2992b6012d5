"""Case-insensitive search."""

from __future__ import annotations

from itertools import accumulate


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
