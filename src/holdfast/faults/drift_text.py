"""Drift of wording: length, refusals, tone. Each function returns the very text if nothing fits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from random import Random

from holdfast.faults.json_text import parse
from holdfast.faults.texts import read_pairs, read_texts
from holdfast.faults.tokens import count_tokens, first_tokens

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def shift_verbosity(text: str, direction: str, factor: float, rng: Random) -> str:
    """Prose made longer or shorter by a factor; 0.5 and 2 mean the same."""
    if not text.strip() or parse(text) is not None:
        return text
    times = max(factor, 1 / factor)
    return _longer(text, times, rng) if direction == "expand" else _shorter(text, times)


def _longer(text: str, times: float, rng: Random) -> str:
    wanted = count_tokens(text) * times
    phrases = list(read_texts("verbosity"))
    rng.shuffle(phrases)
    said = text
    at = 0
    while times > 1 and count_tokens(said) < wanted:
        said = f"{said} {phrases[at % len(phrases)]}"
        at += 1
    return said


def _shorter(text: str, times: float) -> str:
    """As many whole sentences as fit; at least a part of the first."""
    limit = max(1, int(count_tokens(text) / times))
    kept = ""
    for sentence in _SENTENCE_END.split(text):
        longer = f"{kept} {sentence}".strip()
        if count_tokens(longer) > limit:
            break
        kept = longer
    return kept or first_tokens(text, limit)


def rephrase_refusal(text: str, severity: str, rng: Random) -> str:
    """A refusal in other words: a contraction (subtle), another phrase (moderate), or another text altogether."""
    if not any(_pattern(old).search(text) for old, _ in read_pairs("refusals_moderate")):
        return text
    if severity == "significant":
        return rng.choice(read_texts("refusals_significant"))
    return _replaced(text, read_pairs(f"refusals_{severity}"))


def shift_tone(text: str, severity: str, rng: Random) -> str:
    """Prose with another opening (subtle), other words too (moderate), and another closing (significant)."""
    if not text.strip() or parse(text) is not None:
        return text
    opening, closing = rng.choice(read_pairs("tone_frames"))
    if severity == "subtle":
        return f"{opening} {text}"
    register = "casual" if opening.endswith("!") else "formal"
    said = f"{opening} {_replaced(text, read_pairs(f'tone_{register}'))}"
    return said if severity == "moderate" else f"{said} {closing}"


def _replaced(text: str, pairs: Iterable[tuple[str, str]]) -> str:
    """Each phrase exchanged in one pass, so that no exchange undoes another; capitals at the start stay."""
    swaps = {_key(old): new for old, new in pairs}
    ordered = sorted(swaps, key=len, reverse=True)
    either = re.compile("|".join(_pattern(old).pattern for old in ordered), re.IGNORECASE)

    def swap(found: re.Match[str]) -> str:
        new = swaps[_key(found[0])]
        return new[0].upper() + new[1:] if found[0][0].isupper() else new

    return either.sub(swap, text)


def _key(phrase: str) -> str:
    return phrase.lower().replace("’", "'")


def _pattern(phrase: str) -> re.Pattern[str]:
    return re.compile(rf"\b{re.escape(phrase)}\b".replace("'", "['’]"), re.IGNORECASE)
