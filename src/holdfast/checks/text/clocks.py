"""Times of the day in words: `half past ten`, `las ocho y media de la mañana`, `halb acht abends`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from holdfast.checks.text.folding import fold, table
from holdfast.checks.text.languages import Language
from holdfast.checks.text.quantities import Fact, clock

HOURS = frozenset(
    fold(word)
    for word in ("uhr", "h", "heures", "heure", "o'clock", "uur", "बजे", "horas", "hrs", "час", "часа", "часов", "ore")
)
_FIGURES = re.compile(r"(\d{1,2})(?:[:.h](\d\d))?")
Phrases = dict[tuple[str, ...], int]


class Spoken(NamedTuple):
    """The phrases of one language, by their words."""

    before: Phrases
    """Minutes that stand before the hour."""
    after: Phrases
    halves: Phrases
    """0 before noon, 12 after it."""
    first: Phrases
    """Halves that stand before the hour."""
    hours: dict[str, Fraction]


def spoken(words: Sequence[str], at: int, lang: Language) -> tuple[int, Fact] | None:
    """How many words say the time here, and which; nothing if no word but the hour does."""
    known = _phrases(lang.name)
    led, early = _longest(words, at, known.first)
    size, minutes = _longest(words, at + led, known.before)
    hour = _hour(words, at + led + size, known, lang)
    if hour is None:
        return None
    size += led + 1
    size += at + size < len(words) and words[at + size] in HOURS
    more, later = _longest(words, at + size, known.after)
    told, half = _longest(words, at + size + more, known.halves)
    if not (minutes or later or told or led):
        return None
    return size + more + told, _fact(hour + (minutes or 0) + (later or 0), half if told else early)


def _fact(minutes: int, half: int | None) -> Fact:
    hour, minute = divmod(minutes % 1440, 60)
    if half is not None and hour <= 12:
        return clock(hour, minute, half="pm" if half else "am")
    found = clock(hour, minute)
    return found._replace(readings=found.readings | clock(hour + 12, minute).readings) if hour <= 12 else found


def _hour(words: Sequence[str], at: int, known: Spoken, lang: Language) -> int | None:
    word = words[at] if at < len(words) else ""
    figures = _FIGURES.fullmatch(word)
    if figures:
        return int(figures[1]) * 60 + int(figures[2] or 0) if int(figures[1]) <= 24 else None
    value = known.hours.get(word, lang.numbers.get(word, -1))
    return int(value) * 60 if 0 <= value <= 24 and value == int(value) else None


def _longest(words: Sequence[str], at: int, phrases: Phrases) -> tuple[int, int | None]:
    for size in (4, 3, 2, 1) if phrases else ():
        found = phrases.get(tuple(words[at : at + size]))
        if found is not None:
            return size, found
    return 0, None


@cache
def _phrases(name: str) -> Spoken:
    said = table("words.toml")[name].get("clock", {})
    halves = {half: fold(said.get(half, "")).split() for half in ("am", "pm", "am_first", "pm_first")}
    return Spoken(
        _values(said.get("before", "")),
        _values(said.get("after", "")),
        {_words(p): 12 * (half == "pm") for half in ("am", "pm") for p in halves[half]},
        {_words(p): 12 * (half == "pm_first") for half in ("am_first", "pm_first") for p in halves[half]},
        {word: Fraction(n) for word, n in (pair.split("=") for pair in fold(said.get("hours", "")).split())},
    )


def _values(pairs: str) -> Phrases:
    return {_words(phrase): int(n) for phrase, n in (pair.split("=") for pair in fold(pairs).split())}


def _words(phrase: str) -> tuple[str, ...]:
    return tuple(phrase.split("_"))
