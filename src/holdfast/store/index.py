"""The positions of a run's records: a few numbers per record, so a run of a million trials fits in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from msgspec import DecodeError, Struct

from holdfast.model.codec import create_decoder
from holdfast.model.observation import Observation
from holdfast.plan import Plan
from holdfast.store.blobs import unpack
from holdfast.store.lines import read_records
from holdfast.store.record import TrialRecord
from holdfast.store.rundir import RunDir
from holdfast.store.stored_trials import IdTable

NONE = 0xFFFF_FFFF
"""Replaces a missing number."""
_NOWHERE = 0xFFFF_FFFF_FFFF_FFFF


class _JudgedRecord(Struct):
    """The part of a verdict that identifies it."""

    trial: str
    invariant: str


class _ObservationHead(Struct):
    """The part of an observation that identifies its trial and a harness error."""

    trial: str
    error: str = ""


_trials = create_decoder(TrialRecord)
_judged = create_decoder(_JudgedRecord)
_heads = create_decoder(_ObservationHead)


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


class RunIndex:
    """The position of every trial, observation and verdict of a run, from one pass over its files."""

    def __init__(self, run: RunDir, plan: Plan, verdicts: Path) -> None:
        self._run, self._plan, self._verdicts = run, plan, verdicts
        self._begun = array("Q")
        self._cells = array("I")
        """By trial: the cell of the first rule in its scenario and params, NONE if the plan has no such cell."""
        self._numbers = IdTable(self._read_trials())
        self._observed_at = array("Q", (_NOWHERE,)) * len(self._begun)
        self._observed_in = array("H", (0,)) * len(self._begun)
        files = run.list_observation_files()
        self._files = tuple(map(str, files))
        self._read_observations(files)
        self.verdicts = array("Q")
        """The position of each verdict, by number."""
        self.judged = array("I")
        """The trial of each verdict, by number."""
        scenarios, rules, params = len(plan.scenarios), len(plan.invariants), len(plan.spec.params)
        self.by_cell = Chains(scenarios * rules * params)
        self._read_verdicts()

    def find_number(self, id: str) -> int | None:
        """Return the trial's number, if it was begun and observed."""
        at = self._numbers.find(id)
        return at if at is not None and self.is_observed(at) else None

    def is_observed(self, number: int) -> bool:
        """Return whether a trial that was begun was also observed."""
        return self._observed_at[number] != _NOWHERE

    def get_position(self, number: int) -> int:
        """Return the position of the trial."""
        return self._begun[number]

    def get_observation_position(self, number: int) -> tuple[str, int]:
        """Return the position of a trial's last observation without a harness error, otherwise of the last one."""
        return self._files[self._observed_in[number]], self._observed_at[number]

    @cached_property
    def by_trial(self) -> Chains:
        """The verdicts on each trial, across cells."""
        chains = Chains(len(self._begun))
        for trial in self.judged:
            chains.add(trial)
        return chains

    def list_observed(self) -> Iterator[int]:
        """Return every observed trial, in the order in which they were last begun."""
        return (number for number, at in enumerate(self._observed_at) if at != _NOWHERE)

    # -- construction ----------------------------------------------------------------------------
    def _read_trials(self) -> Iterator[str]:
        """Note where each trial begins and which cell it belongs to, and yield its id."""
        plan = self._plan
        rules = [rule.id for rule in plan.invariants]
        rows = (
            {scenario.name: plan.get_position(rules[0], scenario.name) for scenario in plan.scenarios} if rules else {}
        )
        for start, trial in read_records(self._run.path / "trials.jsonl", _trials.decode, _trials.decode_lines):
            if not trial.task.turns:  # another program wrote the line
                continue
            try:
                cell = rows[trial.scenario] + plan.get_params_index(trial.params)
            except KeyError:  # from another spec, or another program wrote the line
                cell = NONE
            self._begun.append(start)
            self._cells.append(cell)
            yield trial.id

    def _read_observations(self, files: Sequence[Path]) -> None:
        broken = bytearray(len(self._begun))
        for which, path in enumerate(files):
            for start, observation in read_records(path, self._decode_partly, _heads.decode_lines):
                number = self._numbers.find(observation.trial)
                if number is None:
                    continue
                if self._observed_at[number] == _NOWHERE or broken[number] or not observation.error:
                    self._observed_at[number], self._observed_in[number] = start, which
                    broken[number] = bool(observation.error)

    def _decode_partly(self, line: bytes) -> _ObservationHead | Observation:
        """Read only the trial and the error; the whole record is read only if its error may be a blob."""
        try:
            return _heads.decode(line)
        except DecodeError:
            return unpack(line, self._run.path / "blobs")

    def _read_verdicts(self) -> None:
        plan = self._plan
        scenario = plan.scenarios[0].name if plan.scenarios else ""
        steps = {rule.id: plan.get_position(rule.id, scenario) for rule in plan.invariants} if scenario else {}
        for start, verdict in read_records(self._verdicts, _judged.decode, _judged.decode_lines):
            number = self._numbers.find(verdict.trial)
            if number is None:
                continue
            self.verdicts.append(start)
            self.judged.append(number)
            step, cell = steps.get(verdict.invariant), self._cells[number]
            self.by_cell.add(NONE if step is None or cell == NONE else cell + step)
