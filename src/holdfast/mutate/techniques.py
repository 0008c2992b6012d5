"""A type with several techniques: they take turns, and one that changes nothing passes its turn on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from holdfast.mutate.mutator import MadeMutation

Technique = Callable[[str, Random], str]
"""The prompt changed; as it is, or empty, where the technique has nothing to change."""


class Techniques:
    """A mutator that is a table of techniques."""

    def __init__(self, table: Mapping[str, Technique]) -> None:
        self._table = tuple(table.items())

    def mutate(self, prompt: str, n: int, rng: Random) -> MadeMutation | None:
        if not prompt.strip():
            return None
        for step in range(len(self._table)):
            name, technique = self._table[(n + step) % len(self._table)]
            made = technique(prompt, rng)
            if made.strip() and made != prompt:
                return MadeMutation((made,), name)
        return None
