"""The characters that a pattern tells apart, one for each kind; which a set holds, the engine itself is asked."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from re import _constants as sre  # type: ignore[attr-defined]
from typing import Any, NamedTuple

_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
}
_KINDS = (r"\d", r"[^\W\d]", r"\s", r"[^\w\s]")
LAST_SPACE = 0x3000
"""No space stands above it in Unicode."""
FOLDED_INTO_ASCII = (0x130, 0x131, 0x17F, 0x212A)
"""What matches an ASCII letter where case does not matter: İ, ı, ſ and the Kelvin sign."""
CASELESS = range(0x2E80, 0xA4D0)
"""Chinese, Japanese, Yi: no letter of these has upper and lower case."""
_LETTERS = {re.IGNORECASE: "i", re.DOTALL: "s", re.ASCII: "a"}


class CharSet(NamedTuple):
    """What one character of the text may be: a regex for it, and the code points at which its ranges begin and end."""

    text: str
    flags: str
    ends: tuple[int, ...]
    negated: bool
    """Any other character. The engine is not asked for this: it takes `[^\\s\\S]` for anything."""
    exact: bool
    """False where too little is known of it: then it may match any character, and may not."""


WORD = CharSet(r"\w", "", (), False, True)
WORD_ASCII = CharSet(r"\w", "a", (), False, True)
_NEWLINE = CharSet(r"\n", "", (), False, True)


def char_set(op: Any, argument: Any, flags: int) -> CharSet:
    """One character's node of a parsed pattern."""
    letters = "".join(letter for flag, letter in _LETTERS.items() if flags & flag)
    if op is sre.ANY:
        return CharSet(".", letters, (), False, True)
    items = [item for item in argument if item[0] is not sre.NEGATE] if op is sre.IN else [(sre.LITERAL, argument)]
    negated = op is sre.NOT_LITERAL or (op is sre.IN and len(items) < len(argument))
    ranges = list(_ranges(items))
    exact = not flags & re.IGNORECASE or not any(_cased(first, last) for first, last in ranges)
    ends = tuple(end for first, last in ranges for end in (first, last + 1))
    return CharSet(f"[{''.join(map(_member, items))}]", letters, ends, negated, exact)


def _member(item: tuple[Any, Any]) -> str:
    op, argument = item
    if op is sre.CATEGORY:
        return _CATEGORIES[argument]
    first, last = argument if op is sre.RANGE else (argument, argument)
    return f"\\U{first:08x}-\\U{last:08x}"


def _ranges(items: Iterable[tuple[Any, Any]]) -> Iterator[tuple[int, int]]:
    for op, argument in items:
        if op in (sre.LITERAL, sre.RANGE):
            yield argument if op is sre.RANGE else (argument, argument)


def _cased(first: int, last: int) -> bool:
    """Whether anything beyond ASCII may have upper and lower case here."""
    return last >= 128 and not (first in CASELESS and last in CASELESS)


class Alphabet:
    """Kinds of characters as the bits of a mask, and two more bits: a last line break, and the end of the text."""

    def __init__(self, sets: Iterable[CharSet]) -> None:
        known = list(dict.fromkeys((_NEWLINE, WORD, WORD_ASCII, *(one for one in sets if one.exact))))
        chars = "".join(sorted(_characters(known)))
        matched = [_matched(one, chars) for one in known]
        kinds: dict[tuple[bool, ...], int] = {}
        for char in chars:
            kinds.setdefault(tuple(char in some for some in matched), 1 << len(kinds))
        self.count = len(kinds)
        self.last_newline = 1 << self.count
        self.end = 2 << self.count
        self.everything = (4 << self.count) - 1
        self.newline = sum(bit for row, bit in kinds.items() if row[0])
        self._masks = {one: self._mask(kinds, n) for n, one in enumerate(known)}

    def _mask(self, kinds: dict[tuple[bool, ...], int], n: int) -> int:
        mask = sum(bit for row, bit in kinds.items() if row[n])
        return mask | self.last_newline if mask & self.newline else mask

    def mask(self, chars: CharSet) -> int:
        """The kinds that the set may match."""
        return self._masks.get(chars, self.everything & ~self.end)


def _matched(one: CharSet, chars: str) -> set[str]:
    import regex

    flags = {"i": regex.IGNORECASE, "s": regex.DOTALL, "a": regex.ASCII}
    found = set(regex.findall(one.text, chars, sum(flags[letter] for letter in one.flags)))
    return set(chars) - found if one.negated else found


def _characters(sets: Iterable[CharSet]) -> set[str]:
    """All of ASCII, and beyond it one character of every kind between any two ends of ranges."""
    special = [end for code in FOLDED_INTO_ASCII for end in (code, code + 1)]
    ends = sorted({128, sys.maxunicode + 1, *special, *(end for one in sets for end in one.ends if end > 128)})
    found = set(map(chr, range(128)))
    for first, after in itertools.pairwise(ends):
        found.update(_samples(first, after))
    return found


def _samples(first: int, after: int) -> Iterable[str]:
    """A digit, another word character, a space and a sign, as far as there are any."""
    import regex

    found: dict[str, str] = {}
    for start in range(first, after, 4096):
        text = "".join(map(chr, range(start, min(start + 4096, after))))
        for kind in _KINDS:
            if kind not in found and (match := regex.search(kind, text)):
                found[kind] = match[0]
        if set(_KINDS) - set(found) <= ({r"\s"} if start > LAST_SPACE else set()):
            break
    return found.values()
