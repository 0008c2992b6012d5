"""Text as the refusal patterns see it: lower case, no accents or vowel marks, normalised punctuation."""

from __future__ import annotations

import unicodedata

_MARKS = ((0x300, 0x36F), (0x64B, 0x65F), (0x670, 0x670), (0x640, 0x640), (0x93C, 0x93C), (0x200B, 0x200F))
"""Accents, Arabic vowel marks, the Hindi dot below, zero-width characters."""
_SAME = {"’": "'", "‘": "'", "ʼ": "'", "´": "'", "ł": "l", "ँ": "ं", "،": ",", "、": ",", "ى": "ي", "—": ",", "–": ","}


class _Letters(dict[int, str]):
    """The folded form of each letter, computed when first used."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        normal = letter if 0x3040 <= code <= 0x30FF else unicodedata.normalize("NFKD", letter)
        bare = "".join(sign for sign in normal.casefold() if not any(low <= ord(sign) <= high for low, high in _MARKS))
        self[code] = "".join(_SAME.get(sign, sign) for sign in bare)
        return self[code]


_LETTERS = _Letters()


def fold(text: str) -> str:
    return text.translate(_LETTERS)


def unfold_span(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span in the text that corresponds to a span of its folded form."""
    first = last = at = 0
    for n, letter in enumerate(text):
        if at <= start:
            first = n
        if at < end:
            last = n + 1
        at += len(_LETTERS[ord(letter)])
    return first, last
