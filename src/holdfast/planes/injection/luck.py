"""Random draws: each is a digest of its position, so it is the same on any machine and in any order."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from random import Random
from typing import Any, cast

from msgspec import UNSET

from holdfast.model.codec import encode_canonical
from holdfast.model.trial import Trial


class Luck:
    """The random draws of one trial.

    They do not depend on the rule, the scenario's name or a fault's position in the list. Every rule gets the same
    weather, and adding or removing a fault does not change the draws of the others.
    """

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._roots: list[bytes] | None = None

    def draw_bits(self, fault: int, key: str) -> int:
        """Return 64 random bits for the fault at that index and the call with that key."""
        if self._roots is None:  # most trials are calm or deterministic, and never draw
            self._roots = self._build_roots()
        return int.from_bytes(blake2b(self._roots[fault] + key.encode(), digest_size=8).digest(), "big")

    def _build_roots(self) -> list[bytes]:
        """Build the root of each fault's draws: the trial's seed, the fault, and its number among equal faults."""
        seed, equal = compute_trial_seed(self._trial), Counter[bytes]()
        roots = []
        for injection in self._trial.scenario.injections:
            content = encode_canonical(injection.content)
            roots.append(b"%d:%b:%d:" % (seed, content, equal[content]))
            equal[content] += 1
        return roots

    def draw_chance(self, fault: int, key: str, probability: float) -> bool:
        """Return True with the given probability."""
        if probability >= 1.0:
            return True
        return self.draw_bits(fault, key) < probability * 2.0**64

    def create_rng(self, fault: int, key: str) -> Random:
        """Return a random generator for one firing."""
        return cast("Random", _LazyRandom(self, fault, "rng:" + key))


def compute_trial_seed(trial: Trial) -> int:
    """Return the base of all draws of a trial; a trial that became a session keeps its own."""
    recording = trial.task.recording
    if recording is not UNSET and recording.seed is not None:
        return recording.seed
    replica = 0 if trial.scenario.steady else trial.replica
    content = encode_canonical([trial.seed, trial.task.digest, trial.params, replica])
    return int.from_bytes(blake2b(content, digest_size=6).digest(), "big")


class _LazyRandom:
    """A Random that is seeded at the first draw. Most faults never draw, and seeding takes about 18 µs."""

    def __init__(self, luck: Luck, fault: int, key: str) -> None:
        self._luck = luck
        self._place = (fault, key)

    def __getattr__(self, name: str) -> Any:
        if name == "_made":
            self._made = Random(self._luck.draw_bits(*self._place))
            return self._made
        return getattr(self._made, name)
