"""Whether two texts are the same answer, on a scale where 0.75 and above means yes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Literal, NamedTuple

from holdfast.checks.text import frames, roles, statements
from holdfast.checks.text.alignment import align
from holdfast.checks.text.courtesy import without_courtesy
from holdfast.checks.text.folding import fold
from holdfast.checks.text.languages import Language, detect
from holdfast.checks.text.partners import partners
from holdfast.checks.text.sentence import Sentence, TextToken, shown
from holdfast.checks.text.synonyms import opposites
from holdfast.checks.text.tokens import sentences
from holdfast.checks.wording import shorten

Method = Literal["lexical", "semantic"]

_COMPARED = 1_000_000
"""Characters of a text that are read; what is beyond must be the same to the letter."""
_STEEP = 1.0
"""How fast words without a counterpart lower the score of their sentence: one in four ends at 0.75."""
_GENTLE = 0.55
"""The same for a sentence that is worded anew: four in nine."""
_ONE_SIDED = 0.85
"""The same where all that one text says is in the other: two in seven."""
_WORTH = 0.5
"""A clause without a counterpart was added if the other text has less than this share of words that it could be."""
_SAME = 0.75
"""From this score on nothing has to be explained, unless a rule asks for more."""
_REASON = 200
"""Characters of one reason."""
_FILLING = frozenset({"empty", "is", "was"})
_NEAR = 0.55
"""Vectors of two words so near mean the same; those of opposites come up to 0.5."""


class Likeness(NamedTuple):
    """How like two texts are, 0 to 1, and what they state differently."""

    score: float
    method: Method
    conflicts: tuple[str, ...] = ()


_known: dict[tuple[bytes, bytes, Method], Likeness] = {}
_KEPT = 64
"""Results that are kept, by digest of the texts."""


def likeness(expected: str, answer: str, method: Method) -> Likeness:
    """How far both texts say the same: what was added counts as much as what was lost."""
    key = (_digest(expected), _digest(answer), method)
    found = _known.get(key)
    if found is None:
        found = _compared(expected, answer, method)
        if len(_known) >= _KEPT:
            _known.clear()
        _known[key] = found
    return found


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _compared(expected: str, answer: str, method: Method) -> Likeness:
    if expected.split() == answer.split():
        return Likeness(1.0, method)
    lang = detect(expected, answer)
    one, other = _read(expected[:_COMPARED], answer[:_COMPARED], lang)
    if expected[_COMPARED:] != answer[_COMPARED:]:
        return Likeness(0.0, method, (f"they differ after {_COMPARED} characters",))
    if not one or not other:
        return _by_small_words(expected, answer, lang, method)
    align(one, other, lang, _near if method == "semantic" else None)
    found = tuple(dict.fromkeys(shorten(reason, _REASON) for reason in _conflicts(one, other, lang)))
    if found:
        return Likeness(0.0, method, found)
    score = _shared(one, other)
    return Likeness(score, method, () if score >= _SAME else tuple(_unlike(one, other)))


def _read(expected: str, answer: str, lang: Language) -> tuple[list[Sentence], list[Sentence]]:
    """The sentences of both texts; `not working` is one word only where the other text says `broken`."""
    one, other = sentences(expected, lang), sentences(answer, lang)
    apart = _lonely(one, other) | _lonely(other, one)
    if apart:
        one, other = sentences(expected, lang, apart), sentences(answer, lang, apart)
    return without_courtesy(one, lang), without_courtesy(other, lang)


def _lonely(one: Sequence[Sentence], other: Sequence[Sentence]) -> frozenset[str]:
    """The groups of phrases with a negation that the other text has no word of."""
    denied = [token for sentence in one for token in sentence.content if "denies" in token.marks]
    if not denied:
        return frozenset()
    known = frozenset[str]().union(*(token.kin for sentence in other for token in sentence.content))
    return frozenset(token.key for token in denied if not token.kin & known)


def _by_small_words(expected: str, answer: str, lang: Language, method: Method) -> Likeness:
    """Answers such as `Yes, it is.`, in which no word says much by itself."""
    ours, theirs = _small_words(expected, lang), _small_words(answer, lang)
    if ours == theirs and ours:
        return Likeness(1.0, method)
    lost, new = (shorten(" ".join(words), 40) for words in (ours, theirs))
    return Likeness(0.0, method, (f"'{lost}' became '{new}'" if ours or theirs else "nothing can be read in them",))


def _small_words(text: str, lang: Language) -> list[str]:
    words = re.findall(r"\w+", fold(text[:_COMPARED]))
    return [word for word in words if not lang.marks.get(word, frozenset()) & _FILLING] or words


def _unlike(one: Sequence[Sentence], other: Sequence[Sentence]) -> Iterator[str]:
    """What makes the score low where nothing is contradicted."""
    for what, found in (("missing", one), ("added", other)):
        left = [token for sentence in found for token in sentence.content if not token.matched]
        if left:
            yield f"{what}: '{shorten(shown(left), 20)}'"
    yield "method: model judges freer wording"


def _conflicts(one: Sequence[Sentence], other: Sequence[Sentence], lang: Language) -> Iterator[str]:
    yield from _replaced(one, other)
    yield from _reversed(one, other, lang)
    pairs = partners(one, other)
    replaced = list(frames.differences(pairs))
    yield from statements.differences(one, other, lang)
    yield from roles.differences(one, other, pairs, lang)
    yield from replaced
    ours, theirs = _left_weight(one), _left_weight(other)
    if theirs < _WORTH * ours:  # else both are worded anew, and the score says how far
        yield from (f"missing: '{shorten(text, 50)}'" for text in _alone(one, not theirs))
    if ours < _WORTH * theirs:
        yield from (f"added: '{shorten(text, 50)}'" for text in _alone(other, not ours))


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
    new = {key: t for s in other for t in s.content if not t.matched for key in (t.key, *t.kin)}
    for token in (token for sentence in one for token in sentence.content if not token.matched):
        against = frozenset[str]().union(*(known.get(key, frozenset()) for key in (token.key, *token.kin)))
        for key in sorted(against & new.keys())[:1]:
            yield f"'{token.text}' became '{new[key].text}'"


def _unmatched_facts(found: Sequence[Sentence]) -> list[TextToken]:
    return [t for s in found for t in s.content if not t.matched and (t.fact is not None or t.name)]


def _alone(found: Sequence[Sentence], for_sure: bool) -> Iterator[str]:
    """Clauses that have no counterpart in the other text; a single word is one if the other text has no word left."""
    for sentence in found:
        for joined, clause in _clauses(sentence):
            left = [token for token in clause if not token.matched]
            alone = len(left) == len(clause) == 1 or (joined and left[:1] == clause[:1])
            word = for_sure and alone and bool(left) and left[0].weight == 1.0
            if word or (len(left) > 1 and 2 * len(left) > len(clause)):
                yield shown(left)


def _clauses(sentence: Sentence) -> Iterator[tuple[bool, list[TextToken]]]:
    """Each with whether `and` stands before it: `your account and your backups`."""
    clause: list[TextToken] = []
    joined = False
    for token in sentence.tokens:
        if token.text in (",", ":", "(", ")") or "and" in token.marks:
            yield joined, clause
            clause, joined = [], "and" in token.marks and token.text != ","
        elif token.key:
            clause.append(token)
    yield joined, clause


def _shared(one: Sequence[Sentence], other: Sequence[Sentence]) -> float:
    """The score of the sentence that is least like anything in the other text."""
    both = min(_left_weight(one), _left_weight(other)) > 0
    return min(
        max(
            0.0,
            1 - (_STEEP if sentence.frame >= frames.FIRM else _GENTLE if both else _ONE_SIDED) * _share_left(sentence),
        )
        for sentence in (*one, *other)
    )


def _left_weight(found: Sequence[Sentence]) -> float:
    return sum(token.weight for sentence in found for token in sentence.content if not token.matched)


def _share_left(sentence: Sentence) -> float:
    content = sentence.content
    total = sum(token.weight for token in content)
    return sum(token.weight for token in content if not token.matched) / total if total else 0.0


def _near(one: str, other: str) -> bool:
    from holdfast.checks.semantic import cosine

    return cosine(one, other) >= _NEAR
