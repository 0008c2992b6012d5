"""A mutator, such as a table of techniques, and the draft of one prompt's mutations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from random import Random
from typing import Protocol

from msgspec import Struct

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
