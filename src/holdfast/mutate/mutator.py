"""What a mutator is: a prompt and luck in, one mutation out."""

from __future__ import annotations

from random import Random
from typing import Protocol

from msgspec import Struct

from holdfast.model.task import DialogueMessage, RequestChange


class MadeMutation(Struct, frozen=True):
    """One mutation of a prompt."""

    turns: tuple[str, ...]
    name: str = ""
    """Which template, entry or technique it is."""
    canaries: tuple[str, ...] = ()
    action: str = ""
    context: tuple[DialogueMessage, ...] = ()
    request: RequestChange | None = None


class Mutator(Protocol):
    """One type of mutation that needs no model."""

    def mutate(self, prompt: str, n: int, rng: Random) -> MadeMutation | None:
        """The nth mutation of the prompt, from 0; None if this prompt has no such mutation.

        The same prompt, n and luck give the same mutation. It is never the prompt itself.
        """
        ...
