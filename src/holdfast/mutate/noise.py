"""noise: a prompt as someone types it in a hurry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from random import Random

from holdfast.mutate.mutator import Techniques, read_common_words, read_padding, read_quantities
from holdfast.mutate.words import change_words, ends_in_literal, find_free_words, sample_words

_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEIGHBOURS = {
    key: "".join(
        _ROWS[row][place]
        for row, place in ((r, c), (r, c - 1), (r, c + 1), (r - 1, c), (r - 1, c + 1), (r + 1, c - 1), (r + 1, c))
        if 0 <= row < len(_ROWS) and 0 <= place < len(_ROWS[row]) and _ROWS[row][place] != key
    )
    for r, keys in enumerate(_ROWS)
    for c, key in enumerate(keys)
}
_TYPO_SHARE = 0.3
"""Fraction of words: enough to be visible, few enough to be readable."""
_LONG_ENOUGH = 4
"""Minimum length of a word that is readable with a typo."""
_MORE_PAIRS = "bs bt cr cs gs hr kn kr ks lr nr rh sn wn wr ws xt yl yn ys"
"""Letter pairs of English words that the bundled words lack."""
_TRAILS = ("?", "!!", "...", " ??", ",", ";", " .", " -", "!?", "....", " ,,", "??!")


def _add_typos(prompt: str, rng: Random, how: str) -> str:
    words = find_free_words(prompt, _LONG_ENOUGH) or find_free_words(prompt, 2)
    return (
        change_words(prompt, sample_words(words, rng, _TYPO_SHARE), lambda word: _misspell(word, rng, how))
        if words
        else prompt
    )


def _misspell(word: str, rng: Random, how: str) -> str:
    """Return the word with a typo that is not another word: `files` would be `flies`, and `there` would be `three`."""
    made = _make_typo(word, rng, how)
    # No list has all words. But a word consists of letter pairs that occur in words. If the typo does, too, one key is
    # held down instead: no word has a letter three times in a row.
    is_strange = any(pair not in read_letter_pairs() for pair in _iterate_pairs(made))
    return made if made == word or is_strange else _make_typo(word, rng, "held")


def _iterate_pairs(word: str) -> Iterator[str]:
    return map("".join, pairwise(word.lower()))


@cache
def read_letter_pairs() -> frozenset[str]:
    """Return the pairs in the bundled words of all languages: a prompt may mix them."""
    words = re.findall(
        r"[^\W\d_]+", " ".join((*read_padding().sentences, *read_common_words(), *read_quantities(), _MORE_PAIRS))
    )
    return frozenset(pair for word in words for pair in _iterate_pairs(word))


def _make_typo(word: str, rng: Random, how: str) -> str:
    at = rng.randrange(
        1 if how != "swapped" or len(word) < 3 else 2, len(word)
    )  # the first letter matters most for reading
    before, letter, after = word[:at], word[at], word[at + 1 :]
    if how in ("doubled", "held"):
        return before + letter * (2 if how == "doubled" else 3) + after
    if how == "missing":
        return before + after
    if how == "swapped":
        return before[:-1] + letter + before[-1] + after
    return before + (rng.choice(_NEIGHBOURS[letter]) if letter in _NEIGHBOURS else letter * 2) + after


def _randomize_case(prompt: str, rng: Random) -> str:
    def flip(word: str) -> str:
        made = "".join(sign.swapcase() if rng.random() < 0.4 and len(sign.swapcase()) == 1 else sign for sign in word)
        return word if made.istitle() or made.isupper() else made  # `may` and `us` would become names

    return change_words(prompt, find_free_words(prompt), flip)


def _join_two_words(prompt: str, rng: Random) -> str:
    """Remove one space between two words."""
    words = find_free_words(prompt)
    pairs = [a for a, b in pairwise(words) if prompt[a.end : b.start] == " "]
    if not pairs:
        return prompt
    at = rng.choice(pairs).end
    return prompt[:at] + prompt[at + 1 :]


def _change_punctuation(prompt: str, rng: Random) -> str:
    if ends_in_literal(prompt):
        return f"{prompt}\n{rng.choice(_TRAILS).strip()}"  # on its line, `rm -rf .` would become another command
    bare = re.sub(r"(?<=\w{2})[.!?。？！ ]+$", "", prompt)
    return bare + rng.choice([trail for trail in _TRAILS if bare + trail != prompt])


NOISE = Techniques(
    {
        "neighbour_keys": lambda prompt, rng: _add_typos(prompt, rng, "neighbour"),
        "missing_letters": lambda prompt, rng: _add_typos(prompt, rng, "missing"),
        "doubled_letters": lambda prompt, rng: _add_typos(prompt, rng, "doubled"),
        "swapped_letters": lambda prompt, rng: _add_typos(prompt, rng, "swapped"),
        "lower_case": lambda prompt, rng: change_words(prompt, find_free_words(prompt), str.lower),
        "random_case": _randomize_case,
        "run_together": _join_two_words,
        "shouted": lambda prompt, rng: change_words(prompt, find_free_words(prompt), str.upper),
        "punctuation": _change_punctuation,
    }
)
"""Typos of the keyboard, casing, spaces and punctuation. Numbers, units, names, commands and quotes stay unchanged."""
