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
    """The sentence without courtesy, before its first comma or as a whole."""
    if _is_courtesy(sentence.tokens, known):
        return
    breaks = [at for at, token in enumerate(sentence.tokens[:_LONGEST]) if token.text in _BREAKS]
    for at in reversed(breaks):
        if _is_courtesy(sentence.tokens[:at], known) and any(t.key for t in sentence.tokens[at + 1 :]):
            sentence.tokens = sentence.tokens[at + 1 :]
            break
    yield sentence


def _is_courtesy(tokens: list[TextToken], known: Courtesy) -> bool:
    if not tokens or len(tokens) > _LONGEST or any(t.fact is not None or t.marks & _SAYS_MORE for t in tokens):
        return False
    joint = "" if known.letters else " "
    said = joint.join(fold(token.text) for token in tokens)
    padded = f"{joint}{said}{joint}"
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
    written = table("courtesy.toml").get(name, {"signs": "", "phrases": "", "denied": ""})
    signs = tuple(sign.replace("_", " ") for sign in fold(written["signs"]).split())
    words = frozenset(fold(written["phrases"]).replace("_", " ").split()) | {w for s in signs for w in s.split()}
    letters = frozenset("".join(words)) if name in NO_SPACES else frozenset()
    return Courtesy(signs, words, letters, tuple(fold(written.get("denied", "")).split()))
