"""Whether two texts are the same answer, on a scale where 0.75 and above means yes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from holdfast.checks.text import roles, statements
from holdfast.checks.text.alignment import align
from holdfast.checks.text.languages import Language, detect
from holdfast.checks.text.sentence import Sentence, Token
from holdfast.checks.text.synonyms import opposites
from holdfast.checks.text.tokens import sentences
from holdfast.checks.wording import shorten

Method = Literal["lexical", "semantic"]

_COMPARED = 1_000_000
"""Characters of a text that are read; what is beyond must be the same to the letter."""
_STEEP = 1.3
"""How fast words without a counterpart lower the score of their sentence: one in five ends below 0.75."""

_NEAR = 0.55
"""Vectors of two words so near mean the same; those of opposites come up to 0.5."""


class Likeness(NamedTuple):
    """How like two texts are, 0 to 1, and what they state differently."""

    score: float
    method: Method
    conflicts: tuple[str, ...] = ()


@lru_cache(maxsize=64)  # answers of 1 MB each are kept here too
def likeness(expected: str, answer: str, method: Method) -> Likeness:
    """How far both texts say the same: what was added counts as much as what was lost."""
    if expected.split() == answer.split():
        return Likeness(1.0, method)
    lang = detect(expected, answer)
    one, other = sentences(expected[:_COMPARED], lang), sentences(answer[:_COMPARED], lang)
    if not one or not other or expected[_COMPARED:] != answer[_COMPARED:]:
        return Likeness(0.0, method, ("nothing in common can be read",))
    align(one, other, lang, _near if method == "semantic" else None)
    found = tuple(dict.fromkeys(_conflicts(one, other, lang)))
    return Likeness(0.0 if found else min(_covered(one), _covered(other)), method, found)


def _conflicts(one: Sequence[Sentence], other: Sequence[Sentence], lang: Language) -> Iterator[str]:
    yield from _replaced(one, other)
    yield from _reversed(one, other, lang)
    yield from statements.differences(one, other, lang)
    yield from roles.differences(one, other, lang)
    yield from (f"missing: '{shorten(text, 50)}'" for text in _alone(one))
    yield from (f"added: '{shorten(text, 50)}'" for text in _alone(other))


def _replaced(one: Sequence[Sentence], other: Sequence[Sentence]) -> Iterator[str]:
    """Numbers, dates and names without a counterpart."""
    lost, new = _unmatched_facts(one), _unmatched_facts(other)
    for at in range(min(3, max(len(lost), len(new)))):
        if at < len(lost) and at < len(new):
            yield f"{lost[at].text} became {new[at].text}"
        elif at < len(lost):
            yield f"{lost[at].text} is missing"
        else:
            yield f"{new[at].text} was added"


def _reversed(one: Sequence[Sentence], other: Sequence[Sentence], lang: Language) -> Iterator[str]:
    """Words that the other text has the opposite of."""
    known = opposites(lang.name)
    new = {token.key: token for sentence in other for token in sentence.content if not token.matched}
    for token in (token for sentence in one for token in sentence.content if not token.matched):
        for key in sorted(known.get(token.key, frozenset()) & new.keys())[:1]:
            yield f"'{token.text}' became '{new[key].text}'"


def _unmatched_facts(found: Sequence[Sentence]) -> list[Token]:
    return [t for s in found for t in s.content if not t.matched and (t.fact is not None or t.name)]


def _alone(found: Sequence[Sentence]) -> Iterator[str]:
    """Clauses that have no counterpart in the other text."""
    for sentence in found:
        for clause in _clauses(sentence):
            left = [token for token in clause if not token.matched]
            if len(left) > 1 and 2 * len(left) > len(clause):
                yield " ".join(token.text for token in left)


def _clauses(sentence: Sentence) -> Iterator[list[Token]]:
    clause: list[Token] = []
    for token in sentence.tokens:
        if token.text in (",", ":", "(", ")") or "and" in token.marks:
            yield clause
            clause = []
        elif token.key:
            clause.append(token)
    yield clause


def _covered(found: Sequence[Sentence]) -> float:
    """The score of the sentence that is least like anything in the other text."""
    return min(max(0.0, 1 - _STEEP * _share_left(sentence)) for sentence in found)


def _share_left(sentence: Sentence) -> float:
    content = sentence.content
    total = sum(token.weight for token in content)
    return sum(token.weight for token in content if not token.matched) / total if total else 0.0


def _near(one: str, other: str) -> bool:
    from holdfast.checks.semantic import cosine

    return cosine(one, other) >= _NEAR
