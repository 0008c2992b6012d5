"""A mutator: techniques, a corpus of attacks or the templates of the user; and the words that ship as data."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import blake2b
from random import Random
from typing import Protocol, TypeVar

from msgspec import Struct, toml

from holdfast.model.canary import MARK, draw_canary
from holdfast.model.mutation import MutationType
from holdfast.model.task import DialogueMessage, RequestChange, Task


class MadeMutation(Struct, frozen=True):
    """One mutation of a prompt."""

    turns: tuple[str, ...]
    name: str = ""
    """The template, entry or technique."""
    canaries: tuple[str, ...] = ()
    action: str = ""
    context: tuple[DialogueMessage, ...] = ()
    request: RequestChange | None = None


class Mutator(Protocol):
    """One type of mutation that needs no model."""

    def mutate(self, prompt: str, n: int, rng: Random) -> MadeMutation | None:
        """Return the nth mutation of the prompt, from 0; None if this prompt has no such mutation.

        The same prompt, n and random generator give the same mutation. It is never the prompt itself.
        """
        ...


Technique = Callable[[str, Random], str]
"""Changes the prompt; returns it unchanged, or empty, if there is nothing to change."""


class Techniques:
    """A mutator that is a table of techniques."""

    def __init__(self, table: Mapping[str, Technique]) -> None:
        self._table = tuple(table.items())

    def mutate(self, prompt: str, n: int, rng: Random) -> MadeMutation | None:
        if not prompt.strip():
            return None
        for step in range(len(self._table)):
            # A technique that does not apply to this prompt is skipped in favour of the next, so that every n gives a
            # mutation while one technique still applies. Duplicates are the caller's business.
            name, technique = self._table[(n + step) % len(self._table)]
            made = technique(prompt, rng)
            if made.strip() and made != prompt:
                return MadeMutation((made,), name)
        return None


def create_random(seed: int, prompt: str, type: str, n: int) -> Random:
    """Return the same random generator for the same mutation, on any machine and in any order."""
    where = "\0".join((str(seed), type, str(n), prompt)).encode("utf-8", "surrogatepass")
    return Random(int.from_bytes(blake2b(where, digest_size=8).digest(), "big"))


class PromptDraft(Struct):
    """The mutations of one golden prompt while they are made."""

    task: Task
    made: dict[MutationType, list[MadeMutation]]
    seen: set[object]
    """The prompt itself, and every mutation so far."""

    def add_if_new(self, type: MutationType, one: MadeMutation) -> bool:
        """Add a mutation if it is new; return whether it was."""
        key = (one.turns, one.context, one.request)
        if key in self.seen:
            return False
        self.seen.add(key)
        self.made.setdefault(type, []).append(one)
        return True


T = TypeVar("T")


class LanguageTable(Struct, frozen=True):
    """A language: frames, function words, courtesies, and its word for each concept."""

    greetings: tuple[str, ...]
    thanks: tuple[str, ...]
    leads: tuple[str, ...]
    small: tuple[str, ...]
    requests: tuple[str, ...]
    """Polite openings of a request."""
    courtesies: tuple[str, ...]
    """Greetings and thanks, which are separate sentences."""
    quantities: tuple[str, ...]
    """Words of quantity, negation and condition: they stay unchanged."""
    words: dict[str, str]


class Padding(Struct, frozen=True):
    """Sentences that ask for nothing and contain nothing useful."""

    sentences: tuple[str, ...]
    before: tuple[str, ...]
    """Connects the padding to the request."""
    after: tuple[str, ...]
    """Connects the request to the padding."""


def read_table(name: str, kind: type[T]) -> T:
    """Read `data/<name>.toml` as a value of that type."""
    from importlib.resources import files

    return toml.decode((files("holdfast.mutate") / "data" / f"{name}.toml").read_text("utf-8"), type=kind)


@cache
def read_languages() -> dict[str, LanguageTable]:
    """Read the languages by code, in the order of the file."""
    return read_table("languages", dict[str, LanguageTable])


@cache
def read_quantities() -> frozenset[str]:
    """Read the words of quantity in all languages, because a prompt may mix them."""
    return frozenset(word for table in read_languages().values() for word in table.quantities)


@cache
def read_common_words() -> frozenset[str]:
    """Read the words that are not names, although they begin a sentence with a capital."""
    return frozenset(
        word
        for table in read_languages().values()
        for text in (*table.small, *table.requests, *table.courtesies, *table.words.values())
        for word in re.findall(r"[^\W\d_]+", text.lower())
    )


@cache
def read_padding() -> Padding:
    return read_table("padding", Padding)


def detect_language(text: str) -> str:
    """Return the bundled language with the most function words in the text; empty if there is none."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    counts = {code: sum(word in table.small for word in words) for code, table in read_languages().items()}
    best = max(counts, key=lambda code: counts[code])
    return best if counts[best] else ""


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
        # Where a prompt starts in the corpus depends only on its text. So a file with few mutations per prompt still
        # tries different attacks, and adding a prompt does not change those of the others.
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
