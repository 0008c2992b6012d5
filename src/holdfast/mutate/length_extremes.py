"""length_extremes: the same request in as few words as it can bear, or lost in very many."""

from __future__ import annotations

import re
from random import Random

from holdfast.mutate.bundled import language_of, languages, padding
from holdfast.mutate.techniques import Techniques
from holdfast.mutate.words import changed, every_word, exact_parts, names

_SHORTEST = 1_500
_LONGEST = 8_000
"""Characters of a padded prompt: more than people write, less than any agent's limit."""
_REPEATED = 4_000
"""Characters of repetition."""
_QUESTION = re.compile(r"(?<![^.!?。！？\n])[^.!?。！？\n]*[?？]+")


def _curt(prompt: str, rng: Random) -> str:
    """Without courtesies, and without the sign at its end."""
    made = prompt
    for table in languages().values():
        for phrase in table.courtesies:
            made = re.sub(rf"(?<!\w){re.escape(phrase)}(?!\w)[,!. ]*", "", made, flags=re.IGNORECASE)
    made = re.sub(r"[^\S\n]{2,}", " ", made).strip(" ,.!?。？！")
    return made if _whole(made, prompt) else prompt


def _telegram(prompt: str, rng: Random) -> str:
    """Without articles and other small words of its language that it can do without."""
    dropped = languages()[code].dropped if (code := language_of(prompt)) else ()
    words = [word for word in every_word(prompt) if word.text.lower() in dropped]
    made = re.sub(r"[^\S\n]+([,.;:!?]|[^\S\n])", r"\1", changed(prompt, words, lambda word: "")).strip(" ,.!?")
    return made if _whole(made, prompt) else prompt


def _question_alone(prompt: str, rng: Random) -> str:
    """The last question of several sentences, where nothing that is to be taken to the letter stands outside of it."""
    asked = _QUESTION.findall(prompt)
    made = asked[-1].strip() if asked else ""
    return made if made and _whole(made, prompt) else prompt


def _whole(made: str, prompt: str) -> bool:
    """Nothing of weight was lost."""
    kept = made.casefold()
    return len(made) > 1 and all(part.casefold() in kept for part in (*exact_parts(prompt), *names(prompt)))


def _chatter(rng: Random, least: int = _SHORTEST, most: int = _LONGEST) -> str:
    size, sentences, made = rng.randint(least, most), padding().sentences, ""
    while len(made) < size:
        made += " ".join(rng.sample(sentences, len(sentences))) + "\n\n"
    cut = made[:size]
    return cut[: cut.rfind(".") + 1]


def _after_chatter(prompt: str, rng: Random) -> str:
    return f"{_chatter(rng)}\n\n{rng.choice(padding().before)}\n\n{prompt}"


def _before_chatter(prompt: str, rng: Random) -> str:
    return f"{prompt}\n\n{rng.choice(padding().after)}\n\n{_chatter(rng)}"


def _within_chatter(prompt: str, rng: Random) -> str:
    half = _LONGEST // 2
    lead, tail = rng.choice(padding().before), rng.choice(padding().after)
    return f"{_chatter(rng, 800, half)}\n\n{lead}\n\n{prompt}\n\n{tail}\n\n{_chatter(rng, 800, half)}"


def _repeated(prompt: str, rng: Random) -> str:
    times = max(2, min(rng.randint(20, 60), _REPEATED // (len(prompt) + 1)))
    return "\n".join([prompt] * times)


def _blank(prompt: str, rng: Random) -> str:
    blank = rng.choice(("\n", " ", "\t", "\n \n")) * rng.randint(500, 2_000)
    return rng.choice((f"{blank}{prompt}", f"{prompt}{blank}.", f"{blank}{prompt}{blank}"))


LENGTH_EXTREMES = Techniques(
    {
        "curt": _curt,
        "chatter_before": _after_chatter,
        "telegram": _telegram,
        "chatter_after": _before_chatter,
        "question_alone": _question_alone,
        "repeated": _repeated,
        "chatter_around": _within_chatter,
        "blank": _blank,
    }
)
"""Courtesies and small words taken away, or pages of chatter, repetition and blanks put around the request."""
