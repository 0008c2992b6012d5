"""language_mixing: the request framed in another language, or with some of its words in one."""

from __future__ import annotations

from random import Random

from holdfast.mutate.mutator import LanguageTable, Techniques, detect_language, read_languages
from holdfast.mutate.words import change_words, ends_in_literal, find_free_words, sample_words

_SHARE = 0.6


def _choose_language(prompt: str, rng: Random) -> LanguageTable:
    language = detect_language(prompt)
    return rng.choice([table for code, table in read_languages().items() if code != language])


def _add_frame(prompt: str, rng: Random) -> str:
    table = _choose_language(prompt, rng)
    return f"{rng.choice(table.greetings)} {_close(prompt)}{rng.choice(table.thanks)}"


def _add_two_frames(prompt: str, rng: Random) -> str:
    first, second = _choose_language(prompt, rng), _choose_language(prompt, rng)
    return f"{rng.choice(first.greetings)} {rng.choice(second.leads)} {_close(prompt)}{rng.choice(first.thanks)}"


def _close(prompt: str) -> str:
    """Return the prompt with a separator: thanks on the line of a command would be its arguments."""
    return prompt + ("\n" if ends_in_literal(prompt) else " ")


def _translate_words(prompt: str, rng: Random) -> str:
    """Replace words that mean the same in every sentence: connectives, days, a few nouns."""
    language = detect_language(prompt)
    if not language:
        return prompt
    concepts = {word: concept for concept, word in read_languages()[language].words.items()}
    words = [word for word in find_free_words(prompt) if word.text.lower() in concepts]
    if not words:
        return prompt
    table = _choose_language(prompt, rng)

    def translate(word: str) -> str:
        foreign = table.words[concepts[word.lower()]]
        return foreign[0].upper() + foreign[1:] if word[0].isupper() else foreign

    return change_words(prompt, sample_words(words, rng, _SHARE), translate)


LANGUAGE_MIXING = Techniques(
    {
        "framed": _add_frame,
        "words": _translate_words,
        "led": lambda prompt, rng: f"{rng.choice(_choose_language(prompt, rng).leads)} {prompt}",
        "words_and_frame": lambda prompt, rng: _add_frame(_translate_words(prompt, rng), rng),
        "two_frames": _add_two_frames,
    }
)
"""Greetings, leads and thanks of another language, and words of the prompt in it. Numbers and names stay unchanged."""
