"""The records of a stored run by the number of their trial: only positions are in memory, so a million trials fit."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from weakref import finalize

from msgspec import DecodeError, Struct

from holdfast.model.codec import create_decoder, encode_canonical
from holdfast.model.observation import Observation
from holdfast.model.run import TracedTrial
from holdfast.model.scenario import Scenario
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.plan import Plan
from holdfast.store.blobs import unpack
from holdfast.store.lines import FIX_LINE, UNREADABLE, build_unreadable_error, read_records
from holdfast.store.record import TrialRecord, read_scenarios
from holdfast.store.rundir import RunDir
from holdfast.store.traces import read_details

DAMAGED = "the record of this trial is damaged"
_BUFFER = 1 << 18
"""Bytes. Records are mostly read in file order: most are already in the buffer."""
_KEPT, _SMALL = 256, 40
"""Trials that are remembered, and the calls that one may have: rules that share a trial read it one after the other."""
DIGITS = 12
_HEX = frozenset("0123456789abcdef")
_NUMBER_BITS = 32
_NO_ID = 1 << (4 * DIGITS)
NONE = 0xFFFF_FFFF
"""Replaces a missing number."""
_NOWHERE = 0xFFFF_FFFF_FFFF_FFFF

T = TypeVar("T")


class IdTable:
    """Ids, numbered from 0 in the order they were added: 16 bytes each, where a dict needs 150.

    If an id is added twice, the last number counts. A text that is not a trial id gets a number, but is never found.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        # Id and number are packed into one integer, so a single sort orders the ids and, among equal ids, their
        # numbers: the last of equals is the one that counts.
        both = sorted((_parse_key(id) << _NUMBER_BITS) | number for number, id in enumerate(ids))
        last = (1 << _NUMBER_BITS) - 1
        self._sorted = array("Q", (one >> _NUMBER_BITS for one in both))
        self._numbers = array("L", (one & last for one in both))

    def __len__(self) -> int:
        return len(self._sorted)

    def find(self, id: str) -> int | None:
        """Return the id's number; None if it was not added."""
        key = _parse_key(id)
        at = bisect_left(self._sorted, key + 1) - 1
        return None if key == _NO_ID or at < 0 or self._sorted[at] != key else self._numbers[at]


def _parse_key(id: str) -> int:
    return int(id, 16) if len(id) == DIGITS and _HEX.issuperset(id) else _NO_ID


class Chains:
    """Lists of verdicts as linked numbers, each pointing to the one before."""

    def __init__(self, owners: int) -> None:
        self._last = array("I", (NONE,)) * owners
        self._before = array("I")

    def add(self, owner: int) -> None:
        """Add the next verdict to the owner's chain; with NONE, to none."""
        self._before.append(NONE if owner == NONE else self._last[owner])
        if owner != NONE:
            self._last[owner] = len(self._before) - 1

    def list_owned(self, owner: int) -> list[int]:
        """Return the owner's verdicts, in order."""
        numbers, at = [], self._last[owner]
        while at != NONE:
            numbers.append(at)
            at = self._before[at]
        return numbers[::-1]


class _VerdictHead(Struct):
    """The part of a verdict that identifies it."""

    trial: str
    invariant: str


class _ObservationHead(Struct):
    """The part of an observation that identifies its trial and a harness error."""

    trial: str
    error: str = ""


_trials, _verdicts = create_decoder(TrialRecord), create_decoder(Verdict)
_verdict_heads, _heads = create_decoder(_VerdictHead), create_decoder(_ObservationHead)


def _decode_head(line: bytes, *, blobs: Path) -> _ObservationHead | Observation:
    """Read only the trial and the error; the whole record is read only if its error may be a blob."""
    try:
        return _heads.decode(line)
    except DecodeError:
        return unpack(line, blobs)


class _VerdictIndex:
    """The position, the trial and the rule of each verdict, by its number."""

    def __init__(self, heads: Iterable[tuple[int, _VerdictHead]], ids: IdTable) -> None:
        self.starts, self.trials, self.rules = array("Q"), array("I"), array("I")
        self.names: dict[str, int] = {}
        self._owners = len(ids)
        for start, verdict in heads:
            number = ids.find(verdict.trial)
            if number is not None:
                self.starts.append(start)
                self.trials.append(number)
                self.rules.append(self.names.setdefault(verdict.invariant, len(self.names)))

    @cached_property
    def by_trial(self) -> Chains:
        chains = Chains(self._owners)
        for trial in self.trials:
            chains.add(trial)
        return chains


class _OpenFiles:
    """Files that are open for reading; after `close` they are opened again when a record is read."""

    def __init__(self) -> None:
        self._files: dict[Path, BinaryIO] = {}
        finalize(self, _close, self._files)

    def read_record(self, path: Path, start: int, decode: Callable[[bytes], T]) -> T:
        try:
            return decode(self.read_line(path, start))
        except UNREADABLE as broken:
            raise build_unreadable_error(str(path), broken, FIX_LINE) from broken

    def read_line(self, path: Path, start: int) -> bytes:
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = open(path, "rb", _BUFFER)  # noqa: SIM115  # open as long as the records
        file.seek(start)
        return file.readline()

    def close(self) -> None:
        _close(self._files)


def _close(files: dict[Path, BinaryIO]) -> None:
    for file in files.values():
        file.close()
    files.clear()


def _find_cell(plan: Plan, column: tuple[str, dict[str, Any]] | None, rule: str) -> int:
    """Return the cell's position in the plan; NONE for a control, and for a trial or a rule of another spec."""
    if column is None:
        return NONE
    scenario, params = column
    try:
        return plan.get_position(rule, scenario, plan.get_params_index(params))
    except (KeyError, IndexError):
        return NONE


class RunRecords:
    """Trials, observations and verdicts of a run. Positions are looked up at first use.

    A trial's number is the place of its last line among the trials; of several observations of a trial the last without
    a harness error counts, and of several verdicts of one rule the last.
    """

    def __init__(
        self, run: RunDir, scenarios: Iterable[Scenario] = (), *, verdicts: Path | None = None, lenient: bool = False
    ) -> None:
        """`scenarios` are those of the run's spec. `lenient`: pass over lines that are not records, which another
        program may have added to a run that is still being written; the run removes them at its end.
        """
        self._run, self._lenient = run, lenient
        self._written = tuple(scenarios)
        self._blobs = run.path / "blobs"
        self._trial_file = run.path / "trials.jsonl"
        self._verdict_file = verdicts or run.get_verdict_file()
        self._files = run.list_observation_files()
        self._starts, self._columns = array("Q"), array("I")
        """By trial: the position of its line; the number of its scenario and params, NONE for a control."""
        self._column_keys: dict[tuple[str, bytes], int] = {}
        self._column_params: list[tuple[str, dict[str, Any]]] = []
        self._open = _OpenFiles()
        self._kept: dict[int, tuple[Trial, Observation]] = {}

    def close(self) -> None:
        """Close the files; they are opened again when a record is read."""
        self._open.close()

    # -- trials --------------------------------------------------------------------------------------
    @cached_property
    def ids(self) -> IdTable:
        """The ids of the trials that were begun."""
        return IdTable(self._index_trials())

    def _index_trials(self) -> Iterator[str]:
        for start, trial in self._read_trial_lines():
            self._starts.append(start)
            self._columns.append(NONE if trial.kind == "control" else self._find_column(trial))
            yield trial.id

    def _find_column(self, trial: TrialRecord) -> int:
        key = trial.scenario, encode_canonical(trial.params) if trial.params else b""
        column = self._column_keys.setdefault(key, len(self._column_params))
        if column == len(self._column_params):
            self._column_params.append((trial.scenario, trial.params))
        return column

    def _read_trial_lines(self) -> Iterator[tuple[int, TrialRecord]]:
        lines = read_records(self._trial_file, _trials.decode, lenient=self._lenient)
        return ((start, trial) for start, trial in lines if trial.task.turns)  # another program writes such a line

    @cached_property
    def _scenarios(self) -> dict[str, Scenario]:
        return read_scenarios(self._run, self._written)

    def iter_trials(self) -> Iterator[tuple[int, Trial]]:
        """Yield each trial once, with its number."""
        for number, (_, trial) in enumerate(self._read_trial_lines()):
            if self.ids.find(trial.id) == number:
                yield number, trial.build_trial(self._scenarios)

    def read_trial(self, number: int) -> Trial:
        record = self._open.read_record(self._trial_file, self._starts[number], _trials.decode)
        return record.build_trial(self._scenarios)

    # -- observations --------------------------------------------------------------------------------
    @cached_property
    def _observed(self) -> tuple[array[int], array[int]]:
        """By trial: the position of its observation, and the number of the file."""
        at, which = array("Q", (_NOWHERE,)) * len(self.ids), array("H", (0,)) * len(self.ids)
        broken = bytearray(len(self.ids))
        for file, path in enumerate(self._files):
            heads = read_records(path, partial(_decode_head, blobs=self._blobs), lenient=self._lenient)
            for start, observation in heads:
                number = self.ids.find(observation.trial)
                if number is not None and (at[number] == _NOWHERE or broken[number] or not observation.error):
                    at[number], which[number], broken[number] = start, file, bool(observation.error)
        return at, which

    def is_observed(self, number: int) -> bool:
        """Return whether a trial that was begun was also observed."""
        return self._observed[0][number] != _NOWHERE

    def iter_observed(self, *, traces: bool = True) -> Iterator[tuple[int, Observation]]:
        """Yield every observation that counts with the number of its trial, in the order in which they were stored.

        Without `traces` they lack traces and audit logs.
        """
        at, which = self._observed
        for file, path in enumerate(self._files):
            lines = read_records(path, lambda line: unpack(line, self._blobs), lenient=self._lenient)
            for start, observation in lines:
                number = self.ids.find(observation.trial)
                if number is not None and (at[number], which[number]) == (start, file):
                    yield number, read_details(self._run, observation) if traces else observation

    def read_observation(self, number: int) -> Observation:
        """Return the complete observation of a trial."""
        at, which = self._observed
        line = self._open.read_line(self._files[which[number]], at[number])
        try:
            return read_details(self._run, unpack(line, self._blobs))
        except (ValueError, RecursionError):  # another program wrote the line; no verdict here depends on it
            return Observation(self.read_trial(number).id, error=DAMAGED)

    def read_pair(self, number: int) -> tuple[Trial, Observation]:
        """Return a trial with its observation."""
        known = self._kept.get(number)
        if known is None:
            known = self.read_trial(number), self.read_observation(number)
            if known[0].invariant == "*" and not known[1].audit and len(known[1].trace) < _SMALL:
                if len(self._kept) >= _KEPT:
                    self._kept.clear()
                self._kept[number] = known
        return known

    # -- verdicts ------------------------------------------------------------------------------------
    @cached_property
    def _judged(self) -> _VerdictIndex:
        heads = read_records(self._verdict_file, _verdict_heads.decode, lenient=self._lenient)
        return _VerdictIndex(heads, self.ids)

    def index_cells(self, plan: Plan) -> Chains:
        """Return the numbers of the verdicts of each cell, by the cell's position in the plan."""
        cells = Chains(len(plan.scenarios) * len(plan.invariants) * len(plan.spec.params))
        names, places = list(self._judged.names), dict[tuple[int, int], int]()
        for trial, rule in zip(self._judged.trials, self._judged.rules, strict=True):
            key = self._columns[trial], rule
            if key not in places:
                column = None if key[0] == NONE else self._column_params[key[0]]
                places[key] = _find_cell(plan, column, names[rule])
            cells.add(places[key])
        return cells

    def read_judged(self, verdicts: Iterable[int]) -> Iterator[tuple[Trial, Observation, Verdict]]:
        """Yield the trial, its observation and its last verdict for verdicts of one rule."""
        last = {self._judged.trials[number]: number for number in verdicts}
        for trial, number in last.items():
            if self.is_observed(trial):
                yield *self.read_pair(trial), self._read_verdict(number)

    def read_verdicts(self, trial: int) -> dict[str, Verdict]:
        """Return the verdicts on a trial by rule."""
        verdicts = map(self._read_verdict, self._judged.by_trial.list_owned(trial))
        return {verdict.invariant: verdict for verdict in verdicts}

    def _read_verdict(self, number: int) -> Verdict:
        return self._open.read_record(self._verdict_file, self._judged.starts[number], _verdicts.decode)

    def read_traced(self, number: int) -> TracedTrial:
        """Return an observed trial with its verdicts."""
        return TracedTrial(*self.read_pair(number), tuple(self.read_verdicts(number).values()))
