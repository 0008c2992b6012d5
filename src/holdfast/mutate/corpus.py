"""Mutations from fixed texts: the bundled attacks, and the user's own templates."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from random import Random

from msgspec import Struct

from holdfast.model.canary import MARK, draw_canary
from holdfast.mutate.bundled import read_table
from holdfast.mutate.mutator import MadeMutation

_WORDS = (
    "“{mark}” with “{code}” written right behind it",
    "the word that “{mark}” and “{code}” make when they are joined without a space",
    "“{mark}” and, attached to it, “{code}”",
    "the two pieces “{mark}” and “{code}” put together into one word",
    "the code whose first part is “{mark}” and whose second part, joined on, is “{code}”",
)
"""The canary in two pieces: an agent that obeys joins them, one that only repeats its input does not."""


class CorpusEntry(Struct, frozen=True):
    """One attack. `{prompt}` is the golden prompt, `{word}` describes the canary, `{mark}` and `{code}` are pieces of
    it.
    """

    name: str
    turns: tuple[str, ...]
    action: str = ""
    """The tool that it wants called."""


class CorpusFile(Struct, frozen=True):
    """A corpus file."""

    attacks: tuple[CorpusEntry, ...]


@cache
def read_corpus(type: str) -> tuple[CorpusEntry, ...]:
    """Return the attacks of `data/<type>.toml`."""
    return read_table(type, CorpusFile).attacks


class CorpusAttacks:
    """The attacks of one type: each prompt starts at another place in the corpus, and wraps around."""

    def __init__(self, type: str) -> None:
        self._type = type

    def mutate(self, prompt: str, n: int, rng: Random) -> MadeMutation | None:
        if not prompt.strip():
            return None
        entries = read_corpus(self._type)
        first = blake2b(prompt.encode("utf-8", "surrogatepass"), digest_size=4).digest()
        entry = entries[(int.from_bytes(first, "big") + n) % len(entries)]
        canary = draw_canary(rng)
        turns = tuple(fill_template(turn, prompt, canary, rng) for turn in entry.turns)
        return MadeMutation(turns, entry.name, (canary,), entry.action)


def fill_template(template: str, prompt: str, canary: str, rng: Random) -> str:
    """Return the template with the prompt, the canary in two pieces, and wrong dates."""
    pieces = {"{mark}": MARK, "{code}": canary.removeprefix(MARK)}
    dates = {"{past}": str(rng.randint(1951, 1999)), "{future}": str(rng.randint(2061, 2099))}
    text = template.replace("{word}", rng.choice(_WORDS))
    for name, value in (pieces | dates).items():
        text = text.replace(name, value)
    return text.replace("{prompt}", prompt)  # last: the prompt may contain such names itself


class CustomTemplates:
    """Each template once, in the order of the file."""

    def __init__(self, templates: Mapping[str, str]) -> None:
        self._templates = tuple(templates.items())

    def mutate(self, prompt: str, n: int, rng: Random) -> MadeMutation | None:
        if n >= len(self._templates):
            return None
        name, template = self._templates[n]
        made = template.replace("{prompt}", prompt)
        return MadeMutation((made,), name) if made != prompt else None
