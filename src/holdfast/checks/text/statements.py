"""What small words do to statements: negation, modality, quantifiers, tense, conditions. Both texts must agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from holdfast.checks.text.folding import fold
from holdfast.checks.text.languages import Language
from holdfast.checks.text.sentence import Sentence, TextToken

_AMOUNTS = ("all", "some", "most", "many", "few", "only")
_LIMITS = ("least", "up_to", "more", "less")
"""Only before a number: `within 30 days`, `over 65`."""
_NAMES = {
    "not": "a negation",
    "can": "that it is possible",
    "must": "that it is required",
    "should": "that it is advised",
    "maybe": "that it is uncertain",
    "least": "at least",
    "up_to": "at most",
    "more": "more than",
    "less": "less than",
    "once": "that it was so once",
}
_AHEAD = frozenset({"under", "over", "above", "below", "within"})
"""Limits that stand before their number."""
_FIRM = 0.6
_NEARLY = frozenset({"nearly", "almost"})
_ABOUT = frozenset({"about", "around", "approximately", "close to", "just about", "practically", "virtually"})
_OWNERS = {"your": "yours", "their": "theirs", "his": "theirs", "her": "theirs"}
_PLEASE = frozenset({"please", "bitte", "proszę", "пожалуйста", "alstublieft", "graag", "veuillez"})
_COPULAS = frozenset({"is", "was"})
_NEAR = 3
_SENTENCES = 100
"""Of each text, that are compared with each other."""


class Mark(NamedTuple):
    """A small word that turns a statement, with the words around it."""

    kind: str
    text: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    frame: float = 0.0

    @property
    def scope(self) -> frozenset[str]:
        return frozenset((*self.before, *self.after))


def marks(sentences: Sequence[Sentence], lang: Language) -> list[Mark]:
    """Every such word of a text."""
    return [mark._replace(frame=sentence.frame) for sentence in sentences for mark in _of(sentence.tokens, lang)]


def _of(tokens: list[TextToken], lang: Language) -> Iterator[Mark]:
    denied_at = -10
    for at, token in enumerate(tokens):
        if not token.marks or ("polite" in token.marks and "not" not in token.marks):
            continue
        before, after = _around(tokens, at, bounded=not token.marks.isdisjoint(("if", "because")))
        if "not" in token.marks or "impossible" in token.marks:
            if at - denied_at > 6 or any(t.text == "," for t in tokens[denied_at:at]):
                yield Mark("not", token.text, before, after)
            denied_at = at
        kinds = _turns(token, tokens, at)
        if kinds:
            yield Mark(kinds, token.text, before, after)
        for kind in (*_AMOUNTS, "once", "if", "because", "so"):
            if kind in token.marks and not ("if" in token.marks and kind == "once"):
                yield Mark(kind, token.text, before, after)
        if token.marks & set(_LIMITS) and _counted(tokens, at):
            yield Mark(next(kind for kind in _LIMITS if kind in token.marks), token.text, before, after)


def _turns(token: TextToken, tokens: list[TextToken], at: int) -> str:
    """can, must, should, maybe, or `can maybe` where the word may be either."""
    if "impossible" in token.marks:
        return "can"
    found = [kind for kind in ("can", "maybe", "must", "should") if kind in token.marks]
    if found == ["can", "maybe"]:
        close = tokens[at + 1 : at + 3]
        if any("not" in t.marks for t in close):
            return "can"
        if (
            any(t.text in ("have", "be") for t in close[:1])
            and token.text == "may"
            and any(t.text == "been" for t in close)
        ):
            return "maybe"
    return " ".join(found)


def _counted(tokens: list[TextToken], at: int) -> bool:
    """Whether a limit stands by a number: `50 at most`, `over 65`; but not in `8 pm under the name of Lee`."""
    back = 0 if tokens[at].text.casefold() in _AHEAD else 3
    return any(token.fact is not None for token in tokens[max(0, at - back) : at + 4])


def _around(tokens: list[TextToken], at: int, *, bounded: bool = False) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The nearest words on both sides; what a condition joins ends at the comma."""
    if bounded:
        end = next((n for n in range(at + 1, len(tokens)) if tokens[n].text == ","), len(tokens))
        after = [t.key for t in tokens[at + 1 : min(end, at + 13)] if t.key][:_NEAR]
        before = [t.key for t in (tokens[max(0, at - 12) : at] or tokens[end : end + 13]) if t.key]
        return tuple(before[-_NEAR:] if at else before[:_NEAR]), tuple(after)
    before = [t.key for t in tokens[max(0, at - 12) : at] if t.key][-_NEAR:]
    after = [t.key for t in tokens[at + 1 : at + 13] if t.key][:_NEAR]
    return tuple(before), tuple(after)


def differences(one: Sequence[Sentence], other: Sequence[Sentence], lang: Language) -> Iterator[str]:
    """In a few words each, what is turned in one text and not in the other."""
    ours, theirs = marks(one, lang), marks(other, lang)
    yield from _counts(ours, theirs, one, other)
    yield from _scopes(ours, theirs)
    yield from _joined(ours, theirs)
    yield from _tenses(one, other)
    yield from (f"'{word}' is missing" for word in _nearly(one, other))
    yield from (f"'{word}' was added" for word in _nearly(other, one))
    yield from _owners(one, other, lang)
    if sum(s.question for s in one) != sum(s.question for s in other):
        yield "a statement became a question" if sum(s.question for s in other) else "a question became a statement"


def _nearly(one: Sequence[Sentence], other: Sequence[Sentence]) -> Iterator[str]:
    """What was nearly so in one text, and is so in the other."""
    if any(fold(token.text) in (*_NEARLY, *_ABOUT) for sentence in other for token in sentence.tokens):
        return
    for sentence in one:
        for token, after in pairwise(sentence.tokens):
            if fold(token.text) in _NEARLY and after.key and after.fact is None and after.matched:
                yield token.text


def _owners(one: Sequence[Sentence], other: Sequence[Sentence], lang: Language) -> Iterator[str]:
    """`Your refund` and `their refund`, unless the text says who they are."""
    ours, theirs = _owned(one, lang), _owned(other, lang)
    for key in ours.keys() & theirs.keys():
        if {ours[key][0], theirs[key][0]} == {"yours", "theirs"}:
            yield f"'{ours[key][1]}' became '{theirs[key][1]}'"


def _owned(sentences: Sequence[Sentence], lang: Language) -> dict[str, tuple[str, str]]:
    """By thing: whose it is, and that in the text's words."""
    found: dict[str, tuple[str, str]] = {}
    named = False
    for sentence in sentences:
        for token, after in pairwise(sentence.tokens):
            named = named or token.name or fold(token.text) in lang.public
            owner = _OWNERS.get(fold(token.text), "")
            if after.key and after.matched and (owner == "yours" or (owner and not named)):
                found.setdefault(after.key, (owner, f"{token.text} {after.text}"))
    return found


def _counts(ours: list[Mark], theirs: list[Mark], one: Sequence[Sentence], other: Sequence[Sentence]) -> Iterator[str]:
    mine, yours = Counter(m.kind for m in ours), Counter(m.kind for m in theirs)
    if mine["not"] != yours["not"]:
        yield _changed("not", ours, theirs)
    yield from _modality(mine, yours, ours, theirs, one, other)
    for kind in ("must", "should", "once"):
        if bool(mine[kind]) != bool(yours[kind]) and not _excused(kind, ours, theirs, one, other):
            yield _changed(kind, ours, theirs)
    for kind in (*_AMOUNTS, *_LIMITS):
        if bool(mine[kind]) != bool(yours[kind]) and not (kind == "all" and _plainly_all(mine, yours)):
            yield _changed(kind, ours, theirs)


def _excused(
    kind: str, ours: list[Mark], theirs: list[Mark], one: Sequence[Sentence], other: Sequence[Sentence]
) -> bool:
    """What must be done may be an order, and what should be may be what is expected."""
    expected = kind == "should" and all(
        any("expected" in t.marks for s in text for t in s.tokens) or _has(marks, "should")
        for text, marks in ((one, ours), (other, theirs))
    )
    return expected or (kind != "once" and _told_to(kind, ours, theirs, one, other))


def _has(marks: list[Mark], kind: str) -> bool:
    return any(mark.kind == kind for mark in marks)


def _told_to(
    kind: str, ours: list[Mark], theirs: list[Mark], one: Sequence[Sentence], other: Sequence[Sentence]
) -> bool:
    """`You need to restart it` is `Restart it`: what must or should be done opens a clause of the other text."""
    said, plain = (ours, other) if any(m.kind == kind for m in ours) else (theirs, one)
    orders = {key for sentence in plain for key in _openings(sentence)}
    return all(orders & {*m.after[:2], *m.before[-1:]} for m in said if m.kind == kind)


def _openings(sentence: Sentence) -> Iterator[str]:
    """The words that begin the sentence or what follows a comma, politeness aside."""
    fresh = True
    for token in sentence.tokens:
        if fresh and token.key and not token.name:
            yield token.key
        asked = fresh and token.text.casefold() in _PLEASE
        fresh = (
            asked
            or token.text in (",", ":")
            or "and" in token.marks
            or "step" in token.marks
            or "polite" in token.marks
        )


def _plainly_all(mine: Counter[str], yours: Counter[str]) -> bool:
    """`The rooms are free` are all of them, where no other amount is named."""
    return all(mine[kind] == yours[kind] for kind in _AMOUNTS if kind != "all")


def _modality(mine: Counter[str], yours: Counter[str], ours: list[Mark], theirs: list[Mark],
              one: Sequence[Sentence], other: Sequence[Sentence]) -> Iterator[str]:  # fmt: skip
    """`may` is `can` or `might`, whichever the other text says."""
    either_a, either_b = mine["can maybe"], yours["can maybe"]
    if (bool(mine["maybe"]) and not (yours["maybe"] or either_b)) or (
        bool(yours["maybe"]) and not (mine["maybe"] or either_a)
    ):
        yield _changed("maybe", ours, theirs)
        return
    for a, b, either, text in ((mine, yours, either_b, other), (yours, mine, either_a, one)):
        said = a["can"] or (a["can maybe"] and not b["maybe"])
        if said and not (b["can"] or either or _able(text)) and not _same_without_can(text, a, b, (*ours, *theirs)):
            yield _changed("can" if a["can"] else "maybe", ours, theirs)


def _same_without_can(text: Sequence[Sentence], a: Counter[str], b: Counter[str], marks: Sequence[Mark]) -> bool:
    """`We cannot take it` is `it is not taken`; and a sentence worded anew may tell what can be by what is."""
    if a["not"] == b["not"] >= a["can"] + a["can maybe"]:
        return True
    return _in_general(text, b) and all(mark.frame < _FIRM for mark in marks if "can" in mark.kind.split())


def _in_general(sentences: Sequence[Sentence], counts: Counter[str]) -> bool:
    """Whether a text tells how things are, neither what was nor what must be: then it tells what can be, too."""
    return not (counts["must"] or counts["should"] or counts["not"]) and not any(
        token.marks & {"past", "was", "will"} for sentence in sentences for token in sentence.tokens
    )


def _able(sentences: Sequence[Sentence]) -> bool:
    return any(
        t.text.casefold().endswith(("able", "ible", "bar", "abile", "ável", "ível"))
        for s in sentences
        for t in s.content
    )


def _changed(kind: str, ours: list[Mark], theirs: list[Mark]) -> str:
    mine, yours = [m for m in ours if kind in m.kind.split()], [m for m in theirs if kind in m.kind.split()]
    if len(mine) > len(yours):
        return f"no longer says {_NAMES.get(kind, kind)} ('{mine[-1].text}')"
    return f"now says {_NAMES.get(kind, kind)} ('{yours[-1].text}')" if yours else f"{_NAMES.get(kind, kind)} differs"


def _scopes(ours: list[Mark], theirs: list[Mark]) -> Iterator[str]:
    """A negation or quantifier must stand by the same words."""
    for mine, yours in ((ours, theirs), (theirs, ours)):
        for mark in mine[:_SENTENCES]:
            alike = [m for m in yours[:_SENTENCES] if _alike(m, mark)]
            if mark.scope and alike and all(m.scope and not m.scope & mark.scope for m in alike):
                yield f"'{mark.text}' stands by other words"


def _alike(one: Mark, other: Mark) -> bool:
    """What can, must or should be is told in many ways where a sentence is worded anew."""
    if max(one.frame, other.frame) < _FIRM and not set(one.kind.split()).isdisjoint(("can", "must", "should")):
        return False
    return one.kind not in ("if", "because", "so") and not set(one.kind.split()).isdisjoint(other.kind.split())


def _joined(ours: list[Mark], theirs: list[Mark]) -> Iterator[str]:
    """Cause and effect, condition and consequence, keep their sides."""
    for kind in ("because", "if"):
        mine, yours = [m for m in ours if m.kind == kind], [m for m in theirs if m.kind == kind]
        if len(mine) == len(yours) == 1 and mine[0].after and yours[0].after:
            a, b = set(mine[0].after), set(yours[0].after)
            if not a & b and (a & set(yours[0].before) or b & set(mine[0].before)):
                yield f"what follows '{mine[0].text}' changed sides"


def _tenses(one: Sequence[Sentence], other: Sequence[Sentence]) -> Iterator[str]:
    """What will be is not what was."""
    for sentence, counterpart in _partners(one, other):
        a, b = _flags(sentence), _flags(counterpart)
        if "will" in b - a and "past" in a - b:
            yield "what is done is now to come"
        if "will" in a - b and "past" in b - a:
            yield "what was to come is now done"
        if {frozenset({"is"}), frozenset({"was"})} == {a & _COPULAS, b & _COPULAS}:
            yield "what is became what was" if "is" in a else "what was became what is"


def _partners(one: Sequence[Sentence], other: Sequence[Sentence]) -> Iterator[tuple[Sentence, Sentence]]:
    """Sentences that share more than half of their words."""
    keys = [{token.key for token in sentence.content} for sentence in other[:_SENTENCES]]
    for sentence in one[:_SENTENCES]:
        mine = {token.key for token in sentence.content}
        for counterpart, yours in zip(other, keys, strict=False):
            if 2 * len(mine & yours) > max(len(mine), len(yours)):
                yield sentence, counterpart


def _flags(sentence: Sentence) -> frozenset[str]:
    return frozenset(mark for token in sentence.tokens for mark in token.marks if mark in ("will", "past", "is", "was"))
