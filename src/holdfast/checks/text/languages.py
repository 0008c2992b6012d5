"""The languages whose small words are known: which one a text is in, and what a word or phrase does there."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from holdfast.checks.text.folding import fold, groups_in, table
from holdfast.checks.text.numerals import compounds

_SCRIPTS = (("ja", r"[\u3040-\u30ff]"), ("zh", r"[\u4e00-\u9fff]"), ("ru", r"[\u0400-\u04ff]"),
            ("ar", r"[\u0600-\u06ff]"), ("hi", r"[\u0900-\u097f]"))  # fmt: skip
_SCRIPT = {lang: re.compile(signs) for lang, signs in _SCRIPTS}
_LATIN = ("en", "de", "fr", "es", "pt", "it", "nl", "pl")
_LETTERS = {"pl": frozenset("ąęłńśźż"), "de": frozenset("ßäöü"), "es": frozenset("ñ¿"), "pt": frozenset("ãõ"),
            "fr": frozenset("œêîûç"), "it": frozenset("ìò")}  # fmt: skip
COMMA_DECIMAL = frozenset({"de", "fr", "es", "pt", "it", "nl", "pl", "ru"})
NO_SPACES = frozenset({"zh", "ja"})
_NAMED = ("months", "days")
_PLAIN = ("clock", "short", "endings", "irregular", "units", "scales", "time", "light", "house", "public", *_NAMED)


class Language(NamedTuple):
    """The tables of one language."""

    name: str
    marks: dict[str, frozenset[str]]
    """By word or phrase, what it does."""
    longest: dict[str, int]
    """By first word, how many words its longest phrase has."""
    numbers: dict[str, Fraction]
    times: dict[str, Fraction]
    scales: dict[str, Fraction]
    named: dict[str, str]
    """Months and weekdays, as `month 4` and `day 1`."""
    endings: tuple[str, ...]
    times_of_day: frozenset[str]
    light: frozenset[str]
    house: frozenset[str]
    """Words for those who speak: the shop, our team."""
    public: frozenset[str]
    """Words for those who are spoken to: customers, guests."""
    segments: re.Pattern[str] | None
    """In writing without spaces: every word that is known, longest first."""


@cache
def language(name: str) -> Language:
    """The tables of a language."""
    words_by_mark = table("words.toml")[name]
    marks: dict[str, set[str]] = {}
    for mark, words in words_by_mark.items():
        if mark not in _PLAIN:
            for word in fold(words).split():
                marks.setdefault(word.replace("_", " "), set()).add(mark)
    longest: dict[str, int] = {}
    for phrase in marks:
        first, *rest = phrase.split()
        longest[first] = max(longest.get(first, 1), 1 + len(rest))
    named = {
        word: f"{kind[:-1]} {n}"
        for kind in _NAMED
        for n, names in enumerate(fold(words_by_mark.get(kind, "")).split("|"), 1)
        for word in names.split()
    }
    counted = _values(words_by_mark.get("units", ""))
    times = {word: Fraction(n[:-1]) for word, n in counted.items() if n.endswith("x")}
    numbers = {word: Fraction(n) for word, n in counted.items() if word not in times}
    numbers = compounds(name, numbers) | numbers
    scales = {word: Fraction(n) for word, n in _values(words_by_mark.get("scales", "")).items()}
    said_when, light, house, public = (
        frozenset(fold(words_by_mark.get(kind, "")).split()) for kind in ("time", "light", "house", "public")
    )
    segments = _segments(name, [*marks, *named, *said_when]) if name in NO_SPACES else None
    return Language(name, {w: frozenset(m) for w, m in marks.items()}, longest, numbers, times, scales, named,
                    tuple(words_by_mark.get("endings", "").split()), said_when, light,
                    house, public, segments)  # fmt: skip


def _values(pairs: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in fold(pairs).split())


def _segments(name: str, known: list[str]) -> re.Pattern[str]:
    grouped = (word for line in groups_in("synonyms.toml", name) for word in line.split())
    words = sorted({*known, *grouped} - {","}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, words)))


def detect(one: str, other: str) -> Language:
    """The language of both texts together: by script, else by the small words that are its own."""
    text = one + " " + other
    for name, signs in _SCRIPT.items():
        if len(signs.findall(text[:4000])) * 4 > len(re.sub(r"[\W\d]", "", text[:4000])):
            return language(name)
    words = re.findall(r"[^\W\d_]+", fold(text[:4000]))
    return language(max(_LATIN, key=lambda name: (_hits(name, words), name == "en")))


def _hits(name: str, words: list[str]) -> int:
    small, own = _small(name), _LETTERS.get(name, frozenset())
    return sum((word in small) + 2 * (not own.isdisjoint(word)) for word in words)


@cache
def _small(name: str) -> frozenset[str]:
    words_by_mark = table("words.toml")[name]
    kinds = ("empty", "not", "can", "must", "all", "is", "was", "and", "polite", "units", "days", "time")
    return frozenset(
        w.split("=")[0]
        for kind in kinds
        for w in fold(words_by_mark.get(kind, "")).split()
        if len(w) > 1 or kind == "empty"
    )
