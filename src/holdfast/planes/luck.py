"""Luck: every draw is a digest of where it is drawn, so it is the same on any machine, in any order."""

from __future__ import annotations

from hashlib import blake2b
from random import Random
from typing import Any, cast

from holdfast.model.codec import canonical
from holdfast.model.trial import Trial


class Luck:
    """The dice of one trial. The invariant is left out: every rule meets the same weather."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._root: bytes | None = None

    def number(self, fault: int, key: str) -> int:
        """64 random bits for the fault at that index and the call with that key."""
        if self._root is None:  # most trials are calm or certain, and never draw
            trial = self._trial
            self._root = canonical([trial.seed, trial.scenario, trial.task.digest, trial.params, trial.replica])
        return int.from_bytes(blake2b(self._root + f"{fault}:{key}".encode(), digest_size=8).digest(), "big")

    def chance(self, fault: int, key: str, probability: float) -> bool:
        """True with the given probability."""
        if probability >= 1.0:
            return True
        return self.number(fault, key) < probability * 2.0**64

    def rng(self, fault: int, key: str) -> Random:
        """Dice for a fault to throw as often as it likes."""
        return cast("Random", _Dice(self, fault, "rng:" + key))


class _Dice:
    """A Random that is made when it is first thrown: seeding it takes longer than a fault, and most throw none."""

    def __init__(self, luck: Luck, fault: int, key: str) -> None:
        self._luck = luck
        self._where = (fault, key)

    def __getattr__(self, name: str) -> Any:
        if name == "_made":
            self._made = Random(self._luck.number(*self._where))
            return self._made
        return getattr(self._made, name)
