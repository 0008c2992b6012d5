"""The words of a prompt: which must stay as they are for the prompt to mean the same, and which may be changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random

from msgspec import Struct

from holdfast.mutate.bundled import common_words, quantities

_EXACT = re.compile(
    r"""
      "[^"\n]{1,200}" | “[^”\n]{1,200}” | „[^“”\n]{1,200}[“”] | «[^»\n]{1,200}» | 「[^」\n]{1,200}」 | `[^`\n]{1,200}`
    | (?<!\w)'[^'\n]{1,200}'(?!\w)
    | \{\{[^{}\n]{1,100}\}\}                             # a parameter of the matrix
    | [a-z][a-z0-9+.-]{1,15}://\S+                     # a URL
    | [\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,6}  # an address
    | ^[^\S\n]*[\w-]{1,40}:(?=\s)                      # the key of a structured prompt
    | [{<\[][\w ./-]{1,60}[}>\]]                       # a placeholder or a tag
    | (?<![!-~€£¥])[!-~€£¥]*[\d_/\\@#$€£¥%=^~|][!-~€£¥]*  # numbers, amounts, paths, ids
    | \d+
    """,
    re.VERBOSE | re.MULTILINE,
)
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_UNITS = re.compile(
    "[µm]g|mcg|kg|[mcd]l|mL|[kcmn]m|oz|lbs?|[mk]ph|[kKMGT]i?B|[kMG]b|[mkMG]W|[kM]?Wh|[mk]V|mAh?|[kMG]?Hz|[hk]Pa|psi|mmol|dB|px|[rp]pm"
)
"""Units that are not words; others are known by the number before them."""
_UNIT_SIZE = 4
_NUMBER_BEFORE = re.compile(r"\d[ \u00a0°/]*$")
_NUMBER_REACH = 32
"""Characters before a word in which its number is looked for."""
_FOLLOWED = re.compile(r"[ '’-]+([^\W\d_])")
_NEGATED = re.compile("n['’]t$|^[nN]['’]")
_INSIDE = 2
"""Small words that a name may have side by side."""
_PRONOUN = re.compile("I(?:['’].*)?")
_FEW = 3
_TRIMMED = "\"'“”„«»「」`.,;:!?()¿¡。、！？"


class Word(Struct, frozen=True):
    """A word and where it stands."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def exact_parts(text: str) -> list[str]:
    """What stands in the prompt to be taken to the letter: numbers, quoted text, addresses, URLs, paths, ids."""
    found = (match[0].strip().strip(_TRIMMED) for match in _EXACT.finditer(text))
    return list(dict.fromkeys(part for part in found if part))


def names(text: str) -> list[str]:
    """Words that are written as names are: a capital inside of a sentence, or several capitals."""
    words = every_word(text)
    found = [word.text for word in words if _is_name(word, text)]
    titled = len(found) > _FEW and len(found) * 2 > len(words)  # a headline, or shouted: capitals mean nothing there
    return [] if titled else list(dict.fromkeys(found))


def free_words(text: str, least: int = 1) -> list[Word]:
    """Words in an alphabet with capitals that may be changed, of at least so many letters.

    Names, units, words of quantity, negation and condition, and all that is exact keep their form. A capital is the
    mark of a name, unless a common word begins a sentence with it, or all of the text is in capitals.
    """
    words = every_word(text)
    shouted = len(words) > _FEW and all(word.text.isupper() for word in words)
    fixed = [not shouted and (_may_name(word, text) or _is_quantity(word, text)) for word in words]
    return [
        word
        for n, word in enumerate(words)
        if len(word.text) >= least and is_cased(word.text) and not fixed[n] and not _is_between(fixed, n)
    ]


def gaps(text: str) -> list[int]:
    """Where a single space stands between two words that may be changed."""
    return [a.end for a, b in pairwise(free_words(text)) if text[a.end : b.start] == " "]


def some(found: Sequence[Word], rng: Random, share: float) -> list[Word]:
    """A share of the words, at least one of them, in order."""
    count = max(1, round(len(found) * share))
    return sorted(rng.sample(list(found), min(count, len(found))), key=lambda word: word.start)


def changed(text: str, found: Sequence[Word], change: Callable[[str], str]) -> str:
    """The text with each of the words, which are in order, changed."""
    parts, at = [], 0
    for word in found:
        parts += [text[at : word.start], change(word.text)]
        at = word.end
    return "".join([*parts, text[at:]])


def is_cased(text: str) -> bool:
    """Whether all of its letters are of an alphabet with capitals."""
    return all(sign.lower() != sign.upper() for sign in text if sign.isalpha())


def every_word(text: str) -> list[Word]:
    """Every word that is not part of something exact, names too."""
    blank = _EXACT.sub(lambda part: " " * len(part[0]), text)
    return [Word(match[0], match.start()) for match in _WORD.finditer(blank)]


def _may_name(word: Word, text: str) -> bool:
    """Whether the word may be a name, or a part of one: a capital, unless it only begins a sentence."""
    if word.text == word.text.lower():
        return False
    followed = _FOLLOWED.match(text, word.end)
    named = followed is not None and followed[1].isupper()
    return named or _is_name(word, text) or word.text.lower() not in common_words()


def _is_quantity(word: Word, text: str) -> bool:
    """A unit, or a word of quantity, negation or condition."""
    if _UNITS.fullmatch(word.text) or word.text.lower() in quantities() or _NEGATED.search(word.text):
        return True
    return len(word.text) <= _UNIT_SIZE and _follows_number(word, text)


def _follows_number(word: Word, text: str) -> bool:
    # Not from the beginning of the text: a long one has many short words.
    return _NUMBER_BEFORE.search(text, max(0, word.start - _NUMBER_REACH), word.start) is not None


def _is_between(fixed: Sequence[bool], n: int) -> bool:
    """A small word between two that keep their form, as in `Lord of the Rings` and `all but the last`."""
    return any(fixed[max(0, n - _INSIDE) : n]) and any(fixed[n + 1 : n + 1 + _INSIDE])


def _is_name(word: Word, text: str) -> bool:
    if not is_cased(word.text) or not word.text[0].isupper() or _PRONOUN.fullmatch(word.text):
        return False
    if len(word.text) > 1 and word.text[1:] != word.text[1:].lower():
        return True
    at = word.start
    while at and text[at - 1] in " \t\"'“„«(*_-":
        at -= 1
    return at > 0 and text[at - 1] not in ".!?:\n¿¡…"
