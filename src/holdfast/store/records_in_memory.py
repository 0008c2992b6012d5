"""The records of a run that is small enough to be read at once, which most are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from holdfast.model.observation import Observation
from holdfast.model.run import TracedTrial
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.plan import Plan
from holdfast.store.audits import whole
from holdfast.store.blobs import unpack_lines
from holdfast.store.record import trials, verdicts
from holdfast.store.record_lines import records
from holdfast.store.rundir import RunDir


class RecordsInMemory:
    """Trials, observations and verdicts of a run, as `StoredRecords` has them.

    UserError if a line is none of ours, or has large values that lie elsewhere.
    """

    def __init__(self, run: RunDir, plan: Plan, given: Path) -> None:
        self._run = run
        self._trials = {trial.id: trial for trial in trials(run) if trial.task.turns}
        self._seen: dict[str, Observation] = {}
        """The last of a trial that was not our failure, else the last of all."""
        for file in run.observation_files():
            for _, seen in records(file, _small, unpack_lines):
                before = self._seen.get(seen.trial)
                if before is None or before.error or not seen.error:
                    self._seen[seen.trial] = seen
        self._verdicts = [verdict for verdict in verdicts(given) if verdict.trial in self._trials]
        self._cells = self._by_cell(plan)

    def judged_in_cell(self, cell: int) -> Iterator[tuple[Trial, Observation, Verdict]]:
        """Every trial that was seen and judged there, with the last verdict on it; in the order of the first ones."""
        for id, verdict in self._cells.get(cell, {}).items():
            seen = self._seen.get(id)
            if seen is not None:
                yield self._trials[id], whole(self._run, seen), verdict

    def traced(self) -> Iterator[TracedTrial]:
        """Every trial that was seen, with its verdicts, in the order in which they were begun."""
        return (self.traced_trial(id) for id in self._trials if id in self._seen)

    def traced_trial(self, id: str) -> TracedTrial:
        """One trial that was seen, with its verdicts; KeyError if it is not there."""
        given = self._by_trial.get(id, {})
        return TracedTrial(self._trials[id], whole(self._run, self._seen[id]), tuple(given.values()))

    def close(self) -> None:
        """There is nothing open."""

    def _by_cell(self, plan: Plan) -> dict[int, dict[str, Verdict]]:
        cells: dict[int, dict[str, Verdict]] = {}
        for verdict in self._verdicts:
            trial = self._trials[verdict.trial]
            try:
                cell = plan.position(verdict.invariant, trial.scenario, plan.params_index(trial.params))
            except KeyError:  # of another spec, or something else wrote the line
                continue
            cells.setdefault(cell, {})[trial.id] = verdict
        return cells

    @cached_property
    def _by_trial(self) -> dict[str, dict[str, Verdict]]:
        """By trial and rule: the last of several counts."""
        given: dict[str, dict[str, Verdict]] = {}
        for verdict in self._verdicts:
            given.setdefault(verdict.trial, {})[verdict.invariant] = verdict
        return given


def _small(line: bytes) -> Observation:
    return unpack_lines(line)[0]
