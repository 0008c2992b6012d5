"""token_manipulation: text that a person reads as before, and that splits into other tokens."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from holdfast.mutate.mutator import Technique, Techniques
from holdfast.mutate.words import change_words, find_free_words, find_gaps, sample_words

JOINERS = ("\u200d", "\u2060", "\u200c", "\ufeff")
"""Zero-width characters."""
SPACES = ("\u00a0", "\u2009", "\u202f", "\u2002", "\u3000", "\u2007")
SEPARATORS = (" | ", " -- ", " ~ ", " · ", " / ", " :: ")
GLITCHES = ("<|endoftext|>", "[PAD]", "</s>", "<unk>", "[MASK]", "SolidGoldMagikarp", "<|im_end|>", "\ufffd\ufffd")
"""Tokens that are special to a tokenizer, or meaningless to any model, and that no person writes."""
_SOFT_HYPHEN = "\u00ad"
_SHARE = 0.4


def _change_words(change: Callable[[str, Random], str], share: float = _SHARE) -> Technique:
    def manipulate(prompt: str, rng: Random) -> str:
        words = find_free_words(prompt, 3) or find_free_words(prompt, 2)
        return (
            change_words(prompt, sample_words(words, rng, share), lambda word: change(word, rng)) if words else prompt
        )

    return manipulate


def _split_word(word: str, rng: Random, sign: str) -> str:
    at = rng.randrange(1, len(word)) if len(word) > 1 else 1
    return word[:at] + sign + word[at:]


def _alternate_case(word: str, rng: Random) -> str:
    first = rng.randrange(2)
    upper = [sign.upper() if len(sign.upper()) == 1 else sign for sign in word]
    return "".join(upper[n] if n % 2 == first else sign.lower() for n, sign in enumerate(word))


def _replace_spaces(signs: tuple[str, ...], share: float) -> Technique:
    """Return a technique that replaces some of the single spaces by another character."""

    def manipulate(prompt: str, rng: Random) -> str:
        places = find_gaps(prompt)
        if not places:
            return prompt
        sign = rng.choice(signs)
        chosen = set(rng.sample(places, max(1, round(len(places) * share))))
        return "".join(sign if at in chosen else letter for at, letter in enumerate(prompt))

    return manipulate


def _add_glitch(prompt: str, rng: Random) -> str:
    token = rng.choice(GLITCHES)
    return rng.choice((f"{token} {prompt}", f"{prompt} {token}", f"{token} {prompt} {token}"))


def _insert_joiners(prompt: str, rng: Random) -> str:
    sign = rng.choice(JOINERS)
    words = find_free_words(prompt, 2)
    return (
        change_words(prompt, sample_words(words, rng, 0.7), lambda word: _split_word(word, rng, sign))
        if words
        else prompt + sign
    )


TOKEN_MANIPULATION = Techniques(
    {
        "letters_apart": _change_words(lambda word, rng: " ".join(word), 0.25),
        "joiners": _insert_joiners,
        "odd_spaces": _replace_spaces(SPACES, 0.6),
        "separators": _replace_spaces(SEPARATORS, 0.5),
        "glitch_tokens": _add_glitch,
        "alternating_case": _change_words(_alternate_case, 0.6),
        "split_words": _change_words(lambda word, rng: _split_word(word, rng, "-")),
        "soft_hyphens": _change_words(lambda word, rng: _SOFT_HYPHEN.join(word), 0.5),
        "wide_spaces": _replace_spaces(("   ", "\t", "     "), 0.6),
    }
)
"""Spaces, joiners, separators and tokens that no person writes. Numbers, names and quoted text stay together."""
