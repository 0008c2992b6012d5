"""length_extremes: the same request in as few words as possible, or inside very many."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from random import Random

from holdfast.mutate.mutator import Techniques, read_languages, read_padding

_SHORTEST = 1_500
_LONGEST = 8_000
"""Characters of a padded prompt: more than people write, less than any agent's limit."""
_REPEATED = 4_000
"""Characters of repetition."""


def _remove_courtesies(prompt: str, rng: Random) -> str:
    """Remove courtesies, and the final punctuation mark unless it belongs to a name."""
    made = prompt
    for pattern in _compile_courtesies():
        made = pattern.sub("", made)
    made = re.sub(r"(?<=[a-zß-ÿ]{3})[.!?]+$", "", made.strip())
    return made if len(made) > 1 else prompt


@cache
def _compile_courtesies() -> tuple[re.Pattern[str], ...]:
    """Match courtesies at the edge of a sentence only: in `How do I say thank you?` it is the subject of the
    question.
    """
    start, end = r"(?:(?<=^)|(?<=[.!?\n] ))", r"(?=[.!?]|\s*$)"
    patterns = []
    for table in read_languages().values():
        thanks = [one for one in table.courtesies if any(one in text.lower() for text in table.thanks)]
        requests, polite = (
            _build_alternatives(table.requests),
            _build_alternatives((*table.courtesies, *table.requests)),
        )
        # "Hello. Goodbye. Translate both words": a greeting with a full stop, or in a list, may be the subject of the
        # question.
        patterns += [
            re.compile(rf"{start}(?i:{requests}),? (?=[a-zß-ÿ])", re.MULTILINE),
            re.compile(rf"{start}(?i:{polite})[,!]+(?:\s+|$)", re.MULTILINE),
            re.compile(rf",\s*(?i:{_build_alternatives((*thanks, *table.requests))}){end}"),
            re.compile(rf"(?<=[.!?])\s+(?i:{_build_alternatives(thanks)})[.!]*\s*$"),
        ]
    return tuple(patterns)


def _build_alternatives(phrases: Iterable[str]) -> str:
    """Return a regex; longer phrases first: `could you please` before `please`."""
    return "|".join(map(re.escape, sorted(phrases, key=len, reverse=True)))


def _generate_chatter(rng: Random, least: int = _SHORTEST, most: int = _LONGEST) -> str:
    size, sentences, made = rng.randint(least, most), read_padding().sentences, ""
    while len(made) < size:
        made += " ".join(rng.sample(sentences, len(sentences))) + "\n\n"
    cut = made[:size]
    return cut[: cut.rfind(".") + 1]


def _prepend_chatter(prompt: str, rng: Random) -> str:
    return f"{_generate_chatter(rng)}\n\n{rng.choice(read_padding().before)}\n\n{prompt}"


def _append_chatter(prompt: str, rng: Random) -> str:
    return f"{prompt}\n\n{rng.choice(read_padding().after)}\n\n{_generate_chatter(rng)}"


def _surround_with_chatter(prompt: str, rng: Random) -> str:
    half = _LONGEST // 2
    lead, tail = rng.choice(read_padding().before), rng.choice(read_padding().after)
    return f"{_generate_chatter(rng, 800, half)}\n\n{lead}\n\n{prompt}\n\n{tail}\n\n{_generate_chatter(rng, 800, half)}"


def _repeat_prompt(prompt: str, rng: Random) -> str:
    times = max(2, min(rng.randint(20, 60), _REPEATED // (len(prompt) + 1)))
    return "\n".join([prompt] * times)


def _add_blanks(prompt: str, rng: Random) -> str:
    blank = rng.choice(("\n", " ", "\t", "\n \n")) * rng.randint(500, 1_500)
    return rng.choice((f"{blank}{prompt}", f"{prompt}{blank}.", f"{blank}{prompt}{blank}"))


LENGTH_EXTREMES = Techniques(
    {
        "curt": _remove_courtesies,
        "chatter_before": _prepend_chatter,
        "chatter_after": _append_chatter,
        "repeated": _repeat_prompt,
        "chatter_around": _surround_with_chatter,
        "blank": _add_blanks,
    }
)
"""Courtesies removed, or pages of chatter, repetition and blanks around the request."""
