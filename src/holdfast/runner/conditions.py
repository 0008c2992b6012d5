"""What the worlds of a run had in common, gathered while its trials end: for the report of the whole."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from holdfast.model.observation import Observation
from holdfast.model.world import Isolation

DIFFERS = "it differs from trial to trial: each says its own"


class Conditions:
    """What was enforced in every trial, and what the services of every trial had to say."""

    def __init__(self, before: Iterable[Isolation] = ()) -> None:
        self._known = {one.feature: one for one in before}
        self._said: tuple[str, ...] | None = None

    def add(self, seen: Observation) -> None:
        """A trial that has ended; one without a world says nothing here."""
        if not seen.isolation:
            return
        for one in seen.isolation:
            known = self._known.get(one.feature)
            if known is None or (known.enforced and not one.enforced):
                self._known[one.feature] = one
            elif known.enforced and known.why != one.why:
                self._known[one.feature] = replace(known, why=DIFFERS)
        said = dict.fromkeys(seen.notes)
        self._said = tuple(said) if self._said is None else tuple(note for note in self._said if note in said)

    @property
    def isolation(self) -> tuple[Isolation, ...]:
        """Each promise once; one that a single trial did not keep is not kept."""
        return tuple(self._known.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """What was noted in every trial."""
        return self._said or ()
