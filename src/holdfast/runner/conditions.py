"""What the worlds of a run had in common, and how replays differ from their recordings: for the report of the whole."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.model.observation import Observation
from holdfast.model.task import Task
from holdfast.model.world import Isolation

SESSION_NOTES = 200
"""So many are in the report of the whole; each trial has its own."""
DIFFERS = "it differs from trial to trial: each says its own"


class Conditions:
    """What was enforced in every trial, what the services of every trial had to say, and what each session had."""

    def __init__(self, before: Iterable[Isolation] = ()) -> None:
        self._known = {one.feature: one for one in before}
        self._said: tuple[str, ...] | None = None
        self._sessions: dict[str, None] = {}
        self._ended: str | None = None
        """How all trials so far ended, badly and alike; empty once one did not."""
        self._trials = 0

    def add(self, seen: Observation) -> None:
        """A trial that has ended; one without a world says nothing here."""
        if not seen.isolation:
            return
        if self._ended != "":
            self._alike(seen)
        for one in seen.isolation:
            known = self._known.get(one.feature)
            if known is None or (known.enforced and not one.enforced):
                self._known[one.feature] = one
            elif known.enforced and known.why != one.why:
                self._known[one.feature] = replace(known, why=DIFFERS)
        said = dict.fromkeys(seen.notes)
        self._said = tuple(said) if self._said is None else tuple(note for note in self._said if note in said)

    def _alike(self, seen: Observation) -> None:
        last = seen.turns[-1] if seen.turns and not seen.error else None
        how = "" if last is None or last.ending == "answered" else f"{last.ending}: {last.detail}"
        self._ended = how if self._ended in (None, how) else ""
        self._trials += 1

    def replayed(self, task: Task, seen: Observation) -> None:
        """A trial of a recorded session: how its calls and the recording differ."""
        from holdfast.planes.recorded_tools import replay_notes

        session = "" if task.recording is UNSET else task.recording.session
        for note in replay_notes(task, seen.recorded):
            if len(self._sessions) < SESSION_NOTES:
                self._sessions[f"session {session}: {note}"] = None

    @property
    def isolation(self) -> tuple[Isolation, ...]:
        """Each promise once; one that a single trial did not keep is not kept."""
        return tuple(self._known.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """How all trials ended, if badly and in the same way, and what was noted in a trial of a session."""
        alike = f"all {self._trials} trials ended in the same way, with {self._ended}; fix that first"
        return (*([alike] if self._ended and self._trials > 1 else []), *self._sessions)

    @property
    def background(self) -> tuple[str, ...]:
        """What was noted in every trial."""
        return self._said or ()
