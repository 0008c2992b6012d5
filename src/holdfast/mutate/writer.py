"""Who writes what no program can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class Assignment(Struct, frozen=True):
    """What a model is asked to write."""

    system: str
    prompt: str
    text: str
    """What is to be mutated."""
    kept: tuple[str, ...] = ()
    """What each mutation must hold."""
    canary: str = ""
    """Of an attack: what no mutation may hold in one piece."""
    taken: tuple[str, ...] = ()
    """Mutations that are there already."""
    round: int = 0
    """How often the same was asked before: another round is another reply."""


class Writer(Protocol):
    """Gives the reply to each assignment, in order; raises HarnessError or UserError if one cannot be had."""

    @property
    def shown(self) -> str:
        """The model, for messages."""
        ...

    def __call__(self, asked: Sequence[Assignment]) -> Sequence[str]: ...
