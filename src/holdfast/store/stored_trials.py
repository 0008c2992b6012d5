"""The trials of a run, each once: only their ids and positions are in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping

from holdfast.model.scenario import Scenario
from holdfast.model.trial import Trial
from holdfast.store.id_table import IdTable
from holdfast.store.lines import LineReader
from holdfast.store.record import get_trial_file, read_placed_trials, read_trial, read_trials
from holdfast.store.rundir import RunDir


class StoredTrials:
    """Trials, numbered in the order in which they were begun. Close it after use."""

    def __init__(self, run: RunDir, scenarios: Mapping[str, Scenario]) -> None:
        """`scenarios` maps names to scenarios; `known_scenarios` reads them."""
        self._run = run
        self._scenarios = scenarios
        self._starts = array("Q")
        self._ids = IdTable(self._read_ids())
        self._lines = LineReader(get_trial_file(run)) if self._starts else None

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[tuple[int, Trial]]:
        """Each trial with its number; a repeated one at its last position."""
        records = enumerate(read_trials(self._run))
        return ((n, one.build_trial(self._scenarios)) for n, one in records if self._ids.find(one.id) == n)

    def find(self, id: str) -> int | None:
        """Return the number of a trial; None if there is none with this id."""
        return self._ids.find(id)

    def read_at(self, number: int) -> Trial:
        """Return a trial by its number."""
        assert self._lines is not None
        return read_trial(self._lines.read_line(self._starts[number])).build_trial(self._scenarios)

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()

    def _read_ids(self) -> Iterator[str]:
        for start, trial in read_placed_trials(self._run):
            self._starts.append(start)
            yield trial.id
