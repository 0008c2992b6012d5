"""Reads the refusal patterns of each language from its TOML file.

A phrase is a regular expression over folded text with four extensions: `{name}` inserts an entry of [words] or a list
of the file, a space matches any space or comma, `…` matches up to 60 characters of the same sentence, and ` …` does
the same at a word boundary.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.resources import files
from typing import Any

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


LATIN = ("en", "de", "fr", "es", "pt", "it", "nl", "pl")
SCRIPTS = (
    (re.compile("[a-z]"), LATIN),
    (re.compile("[\u0400-\u04ff]"), ("ru",)),
    (re.compile("[\u3040-\u30ff]"), ("ja",)),
    (re.compile("[\u4e00-\u9fff]"), ("zh", "ja")),
    (re.compile("[\u0600-\u06ff]"), ("ar",)),
    (re.compile("[\u0900-\u097f]"), ("hi",)),
)
"""Languages by script; only languages whose script occurs in the text are tried."""
UNSPACED = ("zh", "ja")
_GAP = r"[^.!?;:\n。！？；।؟]{0,60}?"
_NEVER = r"(?!)"


@dataclass(frozen=True)
class RefusalLanguage:
    """One language's patterns."""

    sorry: re.Pattern[str]
    but: re.Pattern[str]
    no: re.Pattern[str]
    """A refusal if it is the complete answer."""
    idioms: re.Pattern[str]
    """Phrases that look like a refusal but are not; they are ignored."""
    hedges: re.Pattern[str]
    """Phrases after which a 'but' means that the answer complies."""
    complies: re.Pattern[str]
    gives: re.Pattern[str]
    """Openings of an answer that complies first and refuses only later."""
    offers: re.Pattern[str]
    """Help of another kind."""
    declines: re.Pattern[str]


@lru_cache(maxsize=16)
def load_language(name: str) -> RefusalLanguage:
    data = _load_file(name)
    return RefusalLanguage(
        **{part.name: _compile_phrases(data, data[part.name], name not in UNSPACED) for part in fields(RefusalLanguage)}
    )


@lru_cache(maxsize=1)
def load_latin_words() -> dict[str, frozenset[str]]:
    """Return short common words that distinguish the languages in Latin script."""
    return {name: frozenset(fold(_load_file(name)["signs"]).split()) for name in LATIN}


@lru_cache(maxsize=16)
def _load_file(name: str) -> dict[str, Any]:
    data: dict[str, Any] = tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text("utf-8"))
    return data


def _compile_phrases(data: dict[str, Any], phrases: list[str], spaced: bool) -> re.Pattern[str]:
    joined = _translate_phrase(_expand(data, "|".join(phrases))) or _NEVER
    return re.compile(rf"(?<!\w)(?:{joined})(?!\w)" if spaced else joined)


def _expand(data: dict[str, Any], phrase: str) -> str:
    return re.sub(r"\{([a-z]\w*)\}", lambda name: _expand_name(data, name[1]), phrase)


def _expand_name(data: dict[str, Any], name: str) -> str:
    part = data["words"].get(name) or "|".join(data[name])
    return f"({_expand(data, part)})"


def _translate_phrase(phrase: str) -> str:
    grouped = re.sub(r"(?<!\\)\((?!\?)", "(?:", phrase)
    gaps = grouped.replace(" …", "\0").replace("…", "\1")
    folded = re.sub(r"\\.|[^\\]+", lambda piece: piece[0] if piece[0][0] == "\\" else fold(piece[0]), gaps)
    spaces = folded.replace(" ?", r"[\s,]*").replace(" ", r"[\s,]+")
    return spaces.replace("\0", rf"(?:[\s,]{_GAP})?").replace("\1", _GAP)
