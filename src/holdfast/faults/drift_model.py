"""Drift of the model itself: the name of a smaller one, as a provider that falls back would give it."""

from __future__ import annotations

import re

_SMALLER: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"opus|sonnet"), "haiku"),
    (re.compile(r"-pro\b"), "-flash"),
    (re.compile(r"-flash(?!-lite)"), "-flash-lite"),
    (re.compile(r"-mini\b"), "-nano"),
    (re.compile(r"-(large|medium)\b"), "-small"),
    (re.compile(r"(?<![\d.])(?:\d{2,}|9)b\b"), "8b"),
    (re.compile(r"(?<![\d.])[2-8]b\b"), "1b"),
)
"""Families of models by the word that tells their size; the first that fits is used."""
_DATE = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


def smaller(model: str) -> str:
    """The name of a smaller model of the same family, else the name without its date and with `-mini`."""
    for size, word in _SMALLER:
        if size.search(model):
            return size.sub(word, model, count=1)
    return f"{_DATE.sub('', model)}-mini" if model else model
