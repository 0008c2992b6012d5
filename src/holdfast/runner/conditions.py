"""Properties that the trials of a run share: isolation, notes, endings, and differences from recorded sessions."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.model.observation import Observation
from holdfast.model.task import Task
from holdfast.model.world import Isolation

SESSION_NOTES = 200
"""Number of session notes in the run's report; each trial keeps its own."""
DIFFERS = "it differs from trial to trial: each says its own"


class Conditions:
    """Collects isolation, notes and endings across the trials of a run."""

    def __init__(self, before: Iterable[Isolation] = ()) -> None:
        self._known = {one.feature: one for one in before}
        self._said: tuple[str, ...] | None = None
        self._sessions: dict[str, None] = {}
        self._ended: str | None = None
        """How all trials so far ended, if they all ended badly in the same way; empty once one did not."""
        self._trials = 0

    def add(self, observation: Observation) -> None:
        """Add a trial that has ended. Trials without a world are ignored."""
        if not observation.isolation:
            return
        if self._ended != "":
            self._compare_ending(observation)
        for one in observation.isolation:
            known = self._known.get(one.feature)
            if known is None or (known.enforced and not one.enforced):
                self._known[one.feature] = one
            elif known.enforced and known.why != one.why:
                self._known[one.feature] = replace(known, why=DIFFERS)
        notes = dict.fromkeys(observation.notes)
        self._said = tuple(notes) if self._said is None else tuple(note for note in self._said if note in notes)

    def _compare_ending(self, observation: Observation) -> None:
        last = observation.turns[-1] if observation.turns and not observation.error else None
        how = "" if last is None or last.ending == "answered" else f"{last.ending}: {last.detail}"
        self._ended = how if self._ended in (None, how) else ""
        self._trials += 1

    def note_replay(self, task: Task, observation: Observation) -> None:
        """Note how a replayed trial's calls differ from the recording."""
        from holdfast.planes.recorded_tools import write_replay_notes

        session = "" if task.recording is UNSET else task.recording.session
        for note in write_replay_notes(task, observation.recorded):
            if len(self._sessions) < SESSION_NOTES:
                self._sessions[f"session {session}: {note}"] = None

    @property
    def isolation(self) -> tuple[Isolation, ...]:
        """Each isolation feature once; it is enforced only if every trial enforced it."""
        return tuple(self._known.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """How all trials ended, if they ended badly in the same way, and the notes of replayed sessions."""
        alike = f"all {self._trials} trials ended in the same way, with {self._ended}; fix that first"
        return (*([alike] if self._ended and self._trials > 1 else []), *self._sessions)

    @property
    def background(self) -> tuple[str, ...]:
        """The notes that every trial has."""
        return self._said or ()
