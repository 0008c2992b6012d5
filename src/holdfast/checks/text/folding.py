"""One form for what is written in several, and the tables of words beside this file."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from typing import Any

_ARABIC_MARKS = re.compile("[\u064b-\u0652\u0640]")
_WORD = 30
_SAME_LETTERS = str.maketrans("أإآىё’‘ʼ", "ااايе'''")


def fold(text: str) -> str:
    """The text in small letters, without marks that may be left out."""
    return _folded_word(text) if len(text) <= _WORD else _folded(text)


@lru_cache(maxsize=16384)
def _folded_word(word: str) -> str:
    return _folded(word)


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text).casefold()
    return _ARABIC_MARKS.sub("", text).translate(_SAME_LETTERS)


@cache
def table(file: str) -> dict[str, Any]:
    """One of the tables, as it is written."""
    import tomllib
    from importlib.resources import files

    return tomllib.loads(files("holdfast.checks.text").joinpath(file).read_text("utf-8"))


def groups_in(file: str, name: str) -> list[str]:
    """The lines that a table has for a language."""
    return [fold(line) for line in table(file).get(name, "").splitlines() if line.strip()]
