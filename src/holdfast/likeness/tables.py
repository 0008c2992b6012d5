"""The words of each language, from the tables next to this file, and language detection."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from fractions import Fraction
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

SPACELESS = frozenset({"zh", "ja"})
"""Languages without spaces between words."""
COMMA_DECIMAL = frozenset({"de", "fr", "es", "pt", "it", "nl", "pl", "ru"})
_SCRIPTS = {
    "ja": re.compile(r"[\u3040-\u30ff]"),
    "zh": re.compile(r"[\u4e00-\u9fff]"),
    "ru": re.compile(r"[\u0400-\u04ff]"),
    "ar": re.compile(r"[\u0600-\u06ff]"),
    "hi": re.compile(r"[\u0900-\u097f]"),
}
_LATIN = ("en", "de", "fr", "es", "pt", "it", "nl", "pl")
_LETTERS = {"pl": "ąęłńśźż", "de": "ßäöü", "es": "ñ¿", "pt": "ãõ", "fr": "œêîûç", "it": "ìò"}
_MARKS = (
    *("empty", "and", "past", "not", "cannot", "can", "must", "should", "maybe", "will"),
    *("all", "some", "only", "least", "most", "if"),
)
_COST = "~cost"
_READ_FOR_LANGUAGE = 4000
"""Characters that are read to detect the language."""
_SAME_LETTERS = str.maketrans("أإآىё’‘ʼ", "ااايе'''")
_ARABIC_VOWELS = re.compile("[\u064b-\u0652\u0640]")
_ENGLISH_ENDINGS = ("ations", "ation", "ments", "ment", "ings", "ing", "ied", "ies", "able", "ed", "es", "ly", "s", "e")


class Language(NamedTuple):
    """The words of one language."""

    name: str
    marks: dict[str, frozenset[str]]
    """The effect of each word or phrase on a statement."""
    longest: dict[str, int]
    """For each first word, the number of words of its longest phrase."""
    numbers: dict[str, Fraction]
    scales: dict[str, Fraction]
    named: dict[str, str]
    """Months and weekdays, as `month 4` and `day 1`."""
    courtesy: tuple[str, ...]
    """How sentences begin that are not part of the answer."""
    free: frozenset[str]
    """Stems of words that mean `without cost`."""
    polite: frozenset[str]
    """Words of a sentence that may be left out."""
    groups: dict[str, str]
    """For each stem, its group of synonyms, or of a word and its opposites."""
    sides: dict[str, int]
    """For each stem, its side in a group whose other sides are opposites."""
    known: re.Pattern[str] | None
    """For a spaceless language: matches a word of the tables, longest first."""


def fold(text: str) -> str:
    """Return the text in lower case, without optional marks."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text).casefold()
    return _ARABIC_VOWELS.sub("", text).translate(_SAME_LETTERS)


@cache
def load_table(name: str) -> dict[str, Any]:
    """Return a table as written."""
    return tomllib.loads(files("holdfast.likeness").joinpath(f"{name}.toml").read_text("utf-8"))


@cache
def load_units() -> dict[str, tuple[str, Fraction]]:
    """Return the dimension of each unit and its size in base units."""
    sizes = {}
    for dimension, pairs in load_table("units").items():
        for pair in pairs.split():
            name, _, factor = pair.rpartition("=")
            sizes[fold(name).replace("_", " ")] = (dimension, Fraction(factor))
    return sizes


@cache
def load_language(name: str) -> Language:
    """Return the words of a language."""
    words = load_table("words")[name]
    marks: dict[str, set[str]] = {}
    for mark in _MARKS:
        for word in fold(words.get(mark, "")).split():
            marks.setdefault(re.sub(r"[_'-]", " ", word).strip(), set()).add(mark)
    longest: dict[str, int] = {}
    for phrase in marks:
        first, *rest = phrase.split()
        longest[first] = max(longest.get(first, 1), 1 + len(rest))
    calendar = {
        word: f"{kind[:-1]} {n}"
        for kind in ("months", "days")
        for n, names in enumerate(fold(words.get(kind, "")).split("|"), 1)
        for word in names.split()
    }
    groups, sides = _build_groups(name)
    free = frozenset(get_stem(word, name) for word in fold(words.get("free", "")).split())
    groups |= dict.fromkeys((*free, *(get_stem(word, name) for word in fold(words.get("cost", "")).split())), _COST)
    courtesy = tuple(phrase.replace("_", " ") for phrase in fold(words.get("courtesy", "")).split())
    known_words = _compile_known_words([*marks, *calendar, *load_units(), *groups]) if name in SPACELESS else None
    return Language(
        name=name,
        marks={word: frozenset(effects) for word, effects in marks.items()},
        longest=longest,
        numbers=_parse_values(words.get("numbers", "")),
        scales=_parse_values(words.get("scales", "")),
        named=calendar,
        courtesy=courtesy,
        free=free,
        polite=frozenset(fold(words.get("polite", "")).split()),
        groups=groups,
        sides=sides,
        known=known_words,
    )


def _parse_values(pairs: str) -> dict[str, Fraction]:
    return {word: Fraction(n) for word, _, n in (pair.partition("=") for pair in fold(pairs).split())}


def _build_groups(name: str) -> tuple[dict[str, str], dict[str, int]]:
    """Return the groups of words, opposites first: a word with an opposite is compared by it."""
    groups: dict[str, str] = {}
    sides: dict[str, int] = {}
    for line in fold(load_table("opposites").get(name, "")).splitlines():
        if not line.strip():
            continue
        key = f"={line.split()[0]}"
        for side, words in enumerate(line.split("/")):
            for word in words.split():
                base = get_stem(word, name)
                if base not in groups:
                    groups[base], sides[base] = key, side
    for line in fold(load_table("synonyms").get(name, "")).splitlines():
        bases = [get_stem(word, name) for word in line.split() if "_" not in word]
        key = next(
            (groups[base] for base in bases if base in groups and base not in sides), f"~{bases[0] if bases else ''}"
        )
        for base in bases:
            groups.setdefault(base, key)
    return groups, sides


def _compile_known_words(words: list[str]) -> re.Pattern[str]:
    return re.compile(
        "|".join(
            re.escape(word)
            for word in sorted((word for word in set(words) if not word.isascii()), key=len, reverse=True)
        )
    )


@lru_cache(maxsize=16384)
def get_stem(word: str, name: str) -> str:
    """Return the word without inflection."""
    if name in SPACELESS:
        return word
    if name == "ar" and word.startswith("ال") and len(word) > 4:
        word = word[2:]
    word = word.removesuffix("'s").removesuffix("'")
    for _ in range(1 if name == "en" else 2):  # `kostenlose`, `kostenlos`
        word = _strip_ending(word, name)
    if name == "en" and len(word) > 3:
        word = word[:-1] if word[-1] == "e" or (word[-1] == word[-2] and word[-1] not in "aeious") else word
    return word


def _strip_ending(word: str, name: str) -> str:
    for ending in _load_endings(name):
        if word.endswith(ending) and len(word) - len(ending) >= max(3, len(ending)) and not word.endswith("ss"):
            return word[: -len(ending)] + ("y" if ending in ("ied", "ies") else "")
    return word


@cache
def _load_endings(name: str) -> tuple[str, ...]:
    return _ENGLISH_ENDINGS if name == "en" else tuple(load_table("words")[name].get("endings", "").split())


@cache
def load_months() -> frozenset[str]:
    """Return the months in every language."""
    names = (fold(words.get("months", "")).replace("|", " ").split() for words in load_table("words").values())
    return frozenset(name for words_of_one in names for name in words_of_one)


def detect_language(text: str) -> Language:
    """Return the language of the text: by script, else by its most common short words."""
    text = text[:_READ_FOR_LANGUAGE]
    letters = len(re.sub(r"[\W\d_]", "", text))
    for name, script in _SCRIPTS.items():
        # Commands and names in Latin letters occur in any text, so a seventh of the letters is enough.
        if len(script.findall(text)) * 7 > letters:
            return load_language(name)
    words = re.findall(r"[^\W\d_]+", fold(text))
    return load_language(max(_LATIN, key=lambda name: (_count_hits(name, words), name == "en")))


def _count_hits(name: str, words: list[str]) -> int:
    lang, letters = load_language(name), _LETTERS.get(name, "")
    small = lang.marks.keys() | lang.numbers.keys() | lang.named.keys()
    return sum((word in small) + 2 * any(letter in word for letter in letters) for word in words)
