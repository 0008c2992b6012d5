"""Greetings, thanks, offers of help and closings: said around an answer, and no part of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from holdfast.checks.text.folding import fold, table
from holdfast.checks.text.languages import NO_SPACES, Language
from holdfast.checks.text.sentence import Sentence, TextToken

_LONGEST = 40
"""Words; nobody is polite for longer."""
_ENDS = 3
"""Sentences at either end of a text that may be courtesy."""
_BREAKS = (",", ":", "-")
_SAYS_MORE = frozenset({"must", "should", "only", "least", "up_to", "more", "less"})


class Courtesy(NamedTuple):
    """The words of one language that courtesy is made of."""

    signs: tuple[str, ...]
    words: frozenset[str]
    letters: frozenset[str]
    denied: tuple[str, ...]
    """What courtesy says no to: do not hesitate, no problem."""
    needed: tuple[str, ...]
    """What courtesy says must or should be: if you need anything, this must be annoying."""
    leads: frozenset[str]
    """What joins courtesy to what it leads to: `I am happy to say that`."""


def without_courtesy(found: Sequence[Sentence], lang: Language) -> list[Sentence]:
    """The sentences but for those that are courtesy; all of them if nothing else is said."""
    known = _known(lang.name)
    kept = [
        part
        for at, sentence in enumerate(found)
        for part in ([sentence] if _ENDS <= at < len(found) - _ENDS else _parts(sentence, known))
    ]
    return kept or list(found)


def _parts(sentence: Sentence, known: Courtesy) -> Iterator[Sentence]:
    """The sentence without courtesy: before a comma, after one, or as a whole."""
    if _is_courtesy(sentence.tokens, known):
        return
    tokens = sentence.tokens
    for at in reversed([at for at, token in enumerate(tokens[:_LONGEST]) if _breaks(token, known)]):
        if _says(tokens[at + 1 :]) and _is_courtesy(tokens[: at + (tokens[at].text not in _BREAKS)], known):
            sentence.tokens = tokens = tokens[at + 1 :]
            break
    for at in range(max(1, len(tokens) - _LONGEST), len(tokens) - 1):
        if "if" in tokens[0].marks:
            break  # `If you call us, we can help you` offers nothing else
        if tokens[at].text in _BREAKS and _says(tokens[:at]) and _is_courtesy(tokens[at + 1 :], known):
            sentence.tokens = tokens[:at]
            break
    yield sentence


def _breaks(token: TextToken, known: Courtesy) -> bool:
    return token.text in _BREAKS or fold(token.text) in known.leads


def _says(tokens: list[TextToken]) -> bool:
    return any(token.key for token in tokens)


def _is_courtesy(tokens: list[TextToken], known: Courtesy) -> bool:
    if tokens and "and" in tokens[0].marks:
        tokens = tokens[1:]
    if not tokens or len(tokens) > _LONGEST or any(t.fact is not None for t in tokens):
        return False
    joint = "" if known.letters else " "
    said = joint.join(fold(token.text) for token in tokens)
    padded = f"{joint}{said}{joint}"
    if any(t.marks & _SAYS_MORE for t in tokens) and not any(
        f"{joint}{need}{joint}" in padded for need in known.needed
    ):
        return False
    if any(t.marks & {"not", "impossible"} for t in tokens) and not any(word in said for word in known.denied):
        return False
    return any(f"{joint}{sign}{joint}" in padded for sign in known.signs) and all(
        _is_part(word, known) for token in tokens for word in fold(token.text).split()
    )


def _is_part(word: str, known: Courtesy) -> bool:
    if known.letters and word not in known.words:
        return known.letters.issuperset(word)
    return word in known.words or not word[0].isalnum()


@cache
def _known(name: str) -> Courtesy:
    written = table("courtesy.toml").get(name, {})
    signs, needed = (_phrases(written.get(kind, "")) for kind in ("signs", "needed"))
    words = frozenset(fold(written.get("phrases", "")).replace("_", " ").split()) | {
        w for s in signs for w in s.split()
    }
    words |= {word for phrase in needed for word in phrase.split()}
    letters = frozenset("".join(words)) if name in NO_SPACES else frozenset()
    denied, leads = (fold(written.get(kind, "")).split() for kind in ("denied", "leads"))
    return Courtesy(signs, words | set(leads), letters, tuple(denied), needed, frozenset(leads))


def _phrases(written: str) -> tuple[str, ...]:
    return tuple(phrase.replace("_", " ") for phrase in fold(written).split())
