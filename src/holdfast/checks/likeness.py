"""Whether two texts are the same answer, on a scale where 0.75 and above means yes."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import Literal, NamedTuple

from holdfast.checks import facts
from holdfast.checks.conflict import conflicts

Method = Literal["lexical", "semantic"]

_COMPARED = 20_000
"""Characters compared letter by letter: the cost grows with the square."""
_CAP = 0.4
"""The most a pair can score if a number, name or negation differs."""

Scale = tuple[tuple[float, float], ...]
LEXICAL: Scale = ((0.0, 0.0), (0.54, 0.75), (0.57, 0.8), (1.0, 1.0))
SEMANTIC: Scale = ((0.0, 0.0), (0.60, 0.75), (0.63, 0.8), (1.0, 1.0))
"""Raw measure to scale. Fitted to pairs that people judged; between 0.75 and 0.8 lies almost nothing."""

_CONTAINED, _MORE_WORDS = 0.7, 4
"""What a short answer inside a slightly longer one counts as, and how much longer that may be."""


class Likeness(NamedTuple):
    """How like two texts are, 0 to 1, and what they state differently."""

    score: float
    method: Method
    conflicts: tuple[str, ...] = ()


@lru_cache(maxsize=64)  # answers of 1 MB each are kept here too
def likeness(expected: str, answer: str, method: Method) -> Likeness:
    """How far the answer says what was expected; it may say a little more, but not less or otherwise."""
    if expected.strip() == answer.strip():
        return Likeness(1.0, method)
    one, other = facts.read(expected), facts.read(answer)
    score = _scaled(_words_alike(expected, answer, one, other), LEXICAL)
    if method == "semantic":
        score = max(score, _scaled(_meaning_alike(expected, answer), SEMANTIC))
    found = tuple(conflicts(one, other))
    return Likeness(min(score, _CAP) if found else score, method, found)


def _words_alike(expected: str, answer: str, one: facts.Facts, other: facts.Facts) -> float:
    """Shared content words, those expected counting double, with shared letters."""
    from rapidfuzz import fuzz

    a, b = (facts.plain(text).casefold()[:_COMPARED] for text in (expected, answer))
    letters = fuzz.token_sort_ratio(a, b) / 100
    wanted, given = one.words | {str(n) for n in one.numbers}, other.words | {str(n) for n in other.numbers}
    if not wanted or not given:
        return letters
    shared = len(wanted & given)
    raw = 0.6 * (5 * shared / (4 * len(wanted) + len(given))) + 0.4 * letters
    # 'Paris' is answered by 'The capital of France is Paris.'
    return max(raw, _CONTAINED) if shared == len(wanted) and len(given) - shared <= _MORE_WORDS else raw


def _meaning_alike(expected: str, answer: str) -> float:
    from holdfast.checks.semantic import cosine

    # The mean of a few words points where the mean of the whole does: half an answer must not pass for it.
    whole = min(1.0, len(answer.split()) / (0.6 * max(1, len(expected.split()))))
    return max(0.0, cosine(expected.casefold(), answer.casefold())) * whole


def _scaled(raw: float, scale: Scale) -> float:
    """The raw measure on the calibrated scale."""
    raw = min(max(raw, 0.0), 1.0)
    at = min(bisect_right([x for x, _ in scale], raw), len(scale) - 1)
    (x0, y0), (x1, y1) = scale[at - 1], scale[at]
    return y0 + (raw - x0) * (y1 - y0) / (x1 - x0)
