"""The same frame with another filler says something else; what is worded anew is judged by what it shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher

from holdfast.checks.text.folding import fold
from holdfast.checks.text.partners import Pairs
from holdfast.checks.text.sentence import ARTICLES, Sentence, TextToken, shown

FIRM = 0.7
"""From this share of equal words on, a sentence keeps its frame."""
_LOOSE = 0.45
"""From this share on, a word that stands in another's very place replaces it."""
_LONGEST = 150
"""Words of a sentence whose order is compared."""
_SHORT = 6
"""In a sentence of so many words every one of them may be the answer."""
_COUNTS = 0.5
"""What a word must weigh to be missed by itself."""


def differences(pairs: Pairs) -> Iterator[str]:
    """What was put in, left out or replaced in a sentence that is otherwise as it was."""
    for one, other in pairs:
        if len(one.tokens) <= _LONGEST and len(other.tokens) <= _LONGEST:
            yield from _compared(one, other)


def _compared(one: Sentence, other: Sentence) -> Iterator[str]:
    ours, theirs = _spoken(one), _spoken(other)
    mine, yours = [_said(token) for token in ours], [_said(token) for token in theirs]
    if _share(mine, yours) < _LOOSE:
        return
    turned = mine > yours  # the matcher prefers its first text: the order must not depend on which that is
    codes = SequenceMatcher(None, *((yours, mine) if turned else (mine, yours)), autojunk=False).get_opcodes()
    shared = sum(b - a for kind, a, b, _, _ in codes if kind == "equal") / max(len(mine), len(yours))
    one.frame, other.frame = max(one.frame, shared), max(other.frame, shared)
    if shared < _LOOSE:
        return
    hunks = [(c, d, a, b) if turned else (a, b, c, d) for kind, a, b, c, d in codes if kind != "equal"]
    least = 0.0 if max(len(mine), len(yours)) <= _SHORT else _COUNTS
    yield from _replaced((_left(ours[a:b], least), _left(theirs[c:d], least)) for a, b, c, d in hunks)
    if shared >= FIRM:
        yield from _one_sided(_left(ours), _left(theirs))


def _replaced(hunks: Iterable[tuple[list[TextToken], list[TextToken]]]) -> Iterator[str]:
    for lost, new in hunks:
        if lost and new:
            yield f"'{_first(lost)}' became '{_first(new)}'"


def _first(tokens: list[TextToken]) -> str:
    """The first word; of signs without spaces, all of them."""
    return shown(tokens).split(" ")[0] if " " not in tokens[0].text else tokens[0].text


def _one_sided(lost: list[TextToken], new: list[TextToken]) -> Iterator[str]:
    if lost and not new:
        yield f"'{_first(lost)}' is missing"
    if new and not lost:
        yield f"'{_first(new)}' was added"


def _spoken(sentence: Sentence) -> list[TextToken]:
    return [t for t in sentence.tokens if _said(t) and fold(t.text) not in ARTICLES and "polite" not in t.marks]


def _said(token: TextToken) -> str:
    if token.key or token.text in ",:()=":
        return token.key
    return next((f"@{person}" for person in ("first", "second") if person in token.marks), fold(token.text))


def _left(tokens: list[TextToken], least: float = _COUNTS) -> list[TextToken]:
    return [token for token in tokens if token.key and not token.matched and token.weight >= least]


def _share(mine: list[str], yours: list[str]) -> float:
    both = sum((Counter(mine) & Counter(yours)).values())
    return both / max(len(mine), len(yours), 1)
