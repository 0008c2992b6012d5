"""The tables that ship as data, read at first use."""

from __future__ import annotations

import re
from functools import cache
from typing import TypeVar

from msgspec import Struct, toml

T = TypeVar("T")


class LanguageTable(Struct, frozen=True):
    """A language: frames, function words, courtesies, and its word for each concept."""

    greetings: tuple[str, ...]
    thanks: tuple[str, ...]
    leads: tuple[str, ...]
    small: tuple[str, ...]
    requests: tuple[str, ...]
    """Polite openings of a request."""
    courtesies: tuple[str, ...]
    """Greetings and thanks, which are separate sentences."""
    quantities: tuple[str, ...]
    """Words of quantity, negation and condition: they stay unchanged."""
    words: dict[str, str]


class Padding(Struct, frozen=True):
    """Sentences that ask for nothing and contain nothing useful."""

    sentences: tuple[str, ...]
    before: tuple[str, ...]
    """Connects the padding to the request."""
    after: tuple[str, ...]
    """Connects the request to the padding."""


def read_table(name: str, kind: type[T]) -> T:
    """Read `data/<name>.toml` as a value of that type."""
    from importlib.resources import files

    return toml.decode((files("holdfast.mutate") / "data" / f"{name}.toml").read_text("utf-8"), type=kind)


@cache
def read_languages() -> dict[str, LanguageTable]:
    """Read the languages by code, in the order of the file."""
    return read_table("languages", dict[str, LanguageTable])


@cache
def read_quantities() -> frozenset[str]:
    """Read the words of quantity in all languages, because a prompt may mix them."""
    return frozenset(word for table in read_languages().values() for word in table.quantities)


@cache
def read_common_words() -> frozenset[str]:
    """Read the words that are not names, although they begin a sentence with a capital."""
    return frozenset(
        word
        for table in read_languages().values()
        for text in (*table.small, *table.requests, *table.courtesies, *table.words.values())
        for word in re.findall(r"[^\W\d_]+", text.lower())
    )


@cache
def read_padding() -> Padding:
    return read_table("padding", Padding)


def detect_language(text: str) -> str:
    """Return the bundled language with the most function words in the text; empty if there is none."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    counts = {code: sum(word in table.small for word in words) for code, table in read_languages().items()}
    best = max(counts, key=lambda code: counts[code])
    return best if counts[best] else ""
