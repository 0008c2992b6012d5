"""Which sentences of two texts speak of the same, however they are cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from holdfast.checks.text.sentence import Sentence

_SENTENCES = 1000
"""Of each text, that get partners; in longer texts the words alone are compared."""
_COMMON = 40
"""A word in so many sentences tells none of them from the others."""

Pairs = list[tuple[Sentence, Sentence]]


def partners(one: Sequence[Sentence], other: Sequence[Sentence]) -> Pairs:
    """Every sentence with the one that shares most words with it, seen from both sides."""
    one, other = one[:_SENTENCES], other[:_SENTENCES]
    found = dict.fromkeys((a, b) for a, b in enumerate(_best(one, other)) if b >= 0)
    found.update(dict.fromkeys((b, a) for a, b in enumerate(_best(other, one)) if b >= 0))
    return [(one[a], other[b]) for a, b in sorted(found)]


def _best(one: Sequence[Sentence], other: Sequence[Sentence]) -> list[int]:
    places: dict[str, list[int]] = {}
    for at, sentence in enumerate(other):
        for key in {token.key for token in sentence.content}:
            places.setdefault(key, []).append(at)
    return [_most_shared(sentence, places) for sentence in one]


def _most_shared(sentence: Sentence, places: dict[str, list[int]]) -> int:
    counts: Counter[int] = Counter()
    for key in {token.key for token in sentence.content}:
        counts.update(places.get(key, ())[:_COMMON])
    return min(counts, key=lambda at: (-counts[at], at)) if counts else -1
