"""Text as the patterns of refusals see it: small letters, no accents and vowel marks, one kind of sign for each use."""

from __future__ import annotations

import unicodedata

_MARKS = ((0x300, 0x36F), (0x64B, 0x65F), (0x670, 0x670), (0x640, 0x640), (0x93C, 0x93C), (0x200B, 0x200F))
"""Accents, Arabic vowel marks, the Hindi dot below, signs without width."""
_SAME = {"’": "'", "‘": "'", "ʼ": "'", "´": "'", "ł": "l", "ँ": "ं", "،": ",", "、": ",", "ى": "ي", "—": ",", "–": ","}


class _Letters(dict[int, str]):
    """What each letter becomes, worked out when it is first met."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        kept = letter if 0x3040 <= code <= 0x30FF else unicodedata.normalize("NFKD", letter)
        bare = "".join(sign for sign in kept.casefold() if not any(low <= ord(sign) <= high for low, high in _MARKS))
        self[code] = "".join(_SAME.get(sign, sign) for sign in bare)
        return self[code]


_LETTERS = _Letters()


def fold(text: str) -> str:
    return text.translate(_LETTERS)


def unfolded(text: str, start: int, end: int) -> tuple[int, int]:
    """The place in the text of a span of its folded form."""
    first = last = at = 0
    for n, letter in enumerate(text):
        if at <= start:
            first = n
        if at < end:
            last = n + 1
        at += len(_LETTERS[ord(letter)])
    return first, last
