"""The records of a stored run: all in memory, or each read from its file when needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, TypeVar
from weakref import finalize

from holdfast.model.codec import create_decoder
from holdfast.model.observation import Observation
from holdfast.model.run import TracedTrial
from holdfast.model.scenario import Scenario
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.plan import Plan
from holdfast.store.blobs import unpack
from holdfast.store.index import RunIndex
from holdfast.store.lines import FIX_LINE, UNREADABLE, build_unreadable_error
from holdfast.store.record import TrialRecord, read_scenarios
from holdfast.store.rundir import RunDir
from holdfast.store.traces import read_details

DAMAGED = "the record of this trial is damaged"
_BUFFER = 1 << 18
"""Records are mostly read in file order: most are already in the buffer."""
_KEPT, _SMALL = 256, 4096
"""Limits of the cache of trials, in trials and in bytes per record: rules that share a trial read it one after the
other.
"""

T = TypeVar("T")
_verdicts = create_decoder(Verdict)
_trials = create_decoder(TrialRecord)


class StoredRecords:
    """Trials, observations and verdicts of a run; their positions are looked up at first use."""

    def __init__(self, run: RunDir, plan: Plan, verdicts: Path) -> None:
        self._run, self._plan = run, plan
        self._blobs = run.path / "blobs"
        self._trial_file = str(run.path / "trials.jsonl")
        self._verdict_file = str(verdicts)
        self._open: dict[str, BinaryIO] = {}
        """By path; a Path as a key would be hashed again for every record."""
        self._kept: dict[int, tuple[Trial, Observation]] = {}
        finalize(self, _close, self._open)  # a row that outlives close() may open them again

    def read_cell(self, cell: int) -> Iterator[tuple[Trial, Observation, Verdict]]:
        """Yield every observed and judged trial of the cell with its last verdict, in the order of the first
        verdicts.
        """
        index = self._index
        # A trial may have been judged repeatedly: of several verdicts by one rule the last counts.
        last = {index.judged[number]: number for number in index.by_cell.list_owned(cell)}
        observed = [(trial, verdict) for trial, verdict in last.items() if index.is_observed(trial)]
        verdicts = self._read_verdicts([verdict for _, verdict in observed])
        return ((*self._read_trial(trial), verdict) for (trial, _), verdict in zip(observed, verdicts, strict=True))

    def read_traced(self) -> Iterator[TracedTrial]:
        """Return every observed trial with its verdicts, in the order in which they were last begun."""
        return map(self._read_traced, self._index.list_observed())

    def read_trial(self, id: str) -> TracedTrial:
        """Return one observed trial with its verdicts."""
        number = self._index.find_number(id)
        if number is None:
            raise KeyError(id)
        return self._read_traced(number)

    def close(self) -> None:
        """Close the files; they are opened again when a record is read."""
        _close(self._open)

    @cached_property
    def _index(self) -> RunIndex:
        return RunIndex(self._run, self._plan, Path(self._verdict_file))

    @cached_property
    def _scenarios(self) -> dict[str, Scenario]:
        return read_scenarios(self._run, self._plan.spec.scenarios)

    def _read_traced(self, number: int) -> TracedTrial:
        """Return a trial with its verdicts; the last of several by one rule counts."""
        verdicts = {
            verdict.invariant: verdict for verdict in self._read_verdicts(self._index.by_trial.list_owned(number))
        }
        return TracedTrial(*self._read_trial(number), tuple(verdicts.values()))

    def _read_verdicts(self, numbers: Iterable[int]) -> Iterator[Verdict]:
        places = self._index.verdicts
        return (self._read_record(self._verdict_file, places[number], _verdicts.decode) for number in numbers)

    def _read_trial(self, number: int) -> tuple[Trial, Observation]:
        known = self._kept.get(number)
        if known is not None:
            return known
        record = self._read_record(self._trial_file, self._index.get_position(number), _trials.decode)
        trial = record.build_trial(self._scenarios)
        line = self._read_line(*self._index.get_observation_position(number))
        read = trial, self._read_observation(trial.id, line)
        if trial.invariant == "*" and len(line) <= _SMALL:
            self._cache_trial(number, read)
        return read

    def _cache_trial(self, number: int, read: tuple[Trial, Observation]) -> None:
        if not read[1].audit and len(read[1].trace) < _SMALL // 100:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[number] = read

    def _read_observation(self, trial: str, line: bytes) -> Observation:
        try:
            return read_details(self._run, unpack(line, self._blobs))
        except (ValueError, RecursionError):  # another program wrote the line; no verdict here depends on it
            return Observation(trial, error=DAMAGED)

    def _read_record(self, path: str, start: int, decode: Callable[[bytes], T]) -> T:
        try:
            return decode(self._read_line(path, start))
        except UNREADABLE as broken:
            raise build_unreadable_error(path, broken, FIX_LINE) from broken

    def _read_line(self, path: str, start: int) -> bytes:
        file = self._open.get(path)
        if file is None:
            file = self._open[path] = open(path, "rb", _BUFFER)  # noqa: SIM115  # open as long as the view
        file.seek(start)
        return file.readline()


def _close(files: dict[str, BinaryIO]) -> None:
    for file in files.values():
        file.close()
    files.clear()
