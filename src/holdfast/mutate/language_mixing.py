"""language_mixing: the request framed in another language, or with some of its words in one."""

from __future__ import annotations

from random import Random

from holdfast.mutate.bundled import LanguageTable, language_of, languages
from holdfast.mutate.mutator import Techniques
from holdfast.mutate.words import changed, free_words, some

_SHARE = 0.6


def _other(prompt: str, rng: Random) -> LanguageTable:
    own = language_of(prompt)
    return rng.choice([table for code, table in languages().items() if code != own])


def _framed(prompt: str, rng: Random) -> str:
    table = _other(prompt, rng)
    return f"{rng.choice(table.greetings)} {prompt} {rng.choice(table.thanks)}"


def _led(prompt: str, rng: Random) -> str:
    return f"{rng.choice(_other(prompt, rng).leads)} {prompt}"


def _two_frames(prompt: str, rng: Random) -> str:
    first, second = _other(prompt, rng), _other(prompt, rng)
    return f"{rng.choice(first.greetings)} {rng.choice(second.leads)} {prompt} {rng.choice(first.thanks)}"


def _words(prompt: str, rng: Random) -> str:
    """Replace words that mean the same in every sentence: connectives, days, a few nouns."""
    own = language_of(prompt)
    if not own:
        return prompt
    known = {word: concept for concept, word in languages()[own].words.items()}
    words = [word for word in free_words(prompt) if word.text.lower() in known]
    if not words:
        return prompt
    table = _other(prompt, rng)
    return changed(prompt, some(words, rng, _SHARE), lambda word: _like(table.words[known[word.lower()]], word))


def _like(foreign: str, word: str) -> str:
    return foreign[0].upper() + foreign[1:] if word[0].isupper() else foreign


def _both(prompt: str, rng: Random) -> str:
    return _framed(_words(prompt, rng), rng)


LANGUAGE_MIXING = Techniques(
    {"framed": _framed, "words": _words, "led": _led, "words_and_frame": _both, "two_frames": _two_frames}
)
"""Greetings, leads and thanks of another language, and words of the prompt in it. Numbers and names stay unchanged."""
