"""A stored run for reports. Trials are read when needed: those of a large run one by one."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import overload

from msgspec import Struct
from msgspec.structs import replace

from holdfast.model.observation import Observation
from holdfast.model.run import CaseRow, CellRow, ReplicaRow, TracedTrial, TrialRow
from holdfast.model.score import Case, Cell
from holdfast.model.spec import PART_COMMANDS, Part
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.plan import LazySequence, Plan
from holdfast.score import Tally
from holdfast.score.composite import UNMET
from holdfast.spec.references import interpolate
from holdfast.store.rundir import RunDir
from holdfast.store.stored_records import Chains, RunRecords


class Repetition(Struct, frozen=True):
    """The command that repeats a trial."""

    command: str
    python: str = ""
    """For a spec built by Python code: its position; there is no command."""
    seed: int = 0
    hunts: bool = False
    """A hunt repeats its calm trials, or the trials of a cause, but no other trial alone."""

    def format_trial(self, id: str, rule: str = "") -> str:
        """Return one trial; `rule` judges it."""
        if self.hunts:
            return f"{self.command} --rule {shlex.quote(rule)}" if rule else self.command
        return self._call(f"trials=[{id!r}]") if self.python else f"{self.command} --trial {id}"

    def format_cell(self, rule: str, scenario: str) -> str:
        """Return one rule in one scenario."""
        if self.python:
            return self._call(f"invariants=[{rule!r}], scenarios=[{scenario!r}]")
        return f"{self.command} --invariant {shlex.quote(rule)} --scenario {shlex.quote(scenario)}"

    def _call(self, chosen: str) -> str:
        return f"holdfast.run(…, {chosen}, seed={self.seed})  # the spec of {self.python}"


class StoredCells(Sequence[CellRow]):
    """Every cell and every trial of a run. Trials are read when they are needed: a run may be larger than memory."""

    def __init__(
        self,
        run: RunDir,
        plan: Plan,
        tally: Tally,
        again: Repetition,
        verdicts: Path,
        *,
        records: RunRecords | None = None,
        foreign: Collection[str] = (),
    ) -> None:
        """`foreign`: trials in the records that are not of this plan."""
        self._plan = plan
        self._tally = tally
        self._repetition = again
        self._foreign = foreign
        self.records = records or RunRecords(run, plan.spec.scenarios, verdicts=verdicts)

    @cached_property
    def _verdicts(self) -> Chains:
        return self.records.index_cells(self._plan)

    def __len__(self) -> int:
        return len(self._plan.cells)

    @overload
    def __getitem__(self, at: int) -> CellRow: ...
    @overload
    def __getitem__(self, at: slice) -> list[CellRow]: ...
    def __getitem__(self, at: int | slice) -> CellRow | list[CellRow]:
        return list(self)[at]

    def __iter__(self) -> Iterator[CellRow]:
        return (CellRow(cell, CellTrials(self, cell)) for cell in self._tally.iter_cells())

    def close(self) -> None:
        """Close the files; they are opened again when a trial is read."""
        self.records.close()

    def read_traced(self) -> Iterator[TracedTrial]:
        """Return every observed trial, in the order in which they were begun, one at a time."""
        numbers = range(len(self.records.ids))
        return (self.records.read_traced(number) for number in numbers if self.records.is_observed(number))

    def read_trial(self, id: str) -> TracedTrial:
        """Return one observed trial with its verdicts; KeyError if there is none."""
        number = self.records.ids.find(id)
        if number is None or not self.records.is_observed(number):
            raise KeyError(id)
        return self.records.read_traced(number)

    def format_command(self, id: str) -> str:
        """Return the command that repeats a trial that serves every rule."""
        return self._repetition.format_trial(id)

    def read_rows(self, cell: Cell) -> list[TrialRow]:
        """Return the trials of a cell; for a repeated trial, the last verdict."""
        place = self._plan.get_position(cell.invariant, cell.scenario, self._plan.get_params_index(cell.params))
        rows = []
        deciding, tasks = self._tally.get_deciding_prompts(place), self._plan.get_tasks(cell.invariant)
        for trial, observation, verdict in self.records.read_judged(self._verdicts.list_owned(place)):
            try:
                task = tasks.index(trial.task)
            except ValueError:  # another program wrote the line
                continue
            if trial.id not in self._foreign:
                aside = bool(deciding) and not deciding >> task & 1
                rows.append((task, self._build_row(trial, observation, verdict, aside=aside)))
        rows.sort(key=lambda row: (row[0], row[1].replica))
        return [row for _, row in rows]

    def read_row(self, id: str, rule: str) -> TrialRow | None:
        """Return one observed trial as that rule judged it; None if the run does not have both."""
        try:
            traced = self.read_trial(id)
        except KeyError:
            return None
        judged = {one.invariant: one for one in traced.verdicts}
        return self._build_row(traced.trial, traced.seen, judged[rule], aside=False) if rule in judged else None

    def _build_row(self, trial: Trial, observation: Observation, verdict: Verdict, *, aside: bool) -> TrialRow:
        turns = observation.turns
        at = min(verdict.turn, len(turns) - 1) if verdict.turn > 0 and turns else 0
        turn = turns[at] if turns else None
        return TrialRow(
            id=trial.id,
            prompt=interpolate(trial.task.prompt, trial.params),
            answer=turn.text if turn else None,
            ending="error" if observation.error else observation.ending,
            latency_ms=sum([t.latency_ms for t in turns]),
            outcome=verdict.outcome,
            reason=verdict.reason,
            score=verdict.score,
            detail=observation.error or next((turn.detail for turn in turns if turn.detail), ""),
            replica=trial.replica,
            faults=observation.ledger,
            turns=turns,
            turn=at,
            marks=verdict.marks,
            details=verdict.details,
            code=verdict.code,
            key=verdict.key,
            ended_by=verdict.ended_by,
            output=observation.output,
            notes=observation.notes,
            calls_made=observation.calls_made,
            trace=observation.trace,
            again=self._build_command(trial, verdict),
            aside=aside,
        )

    def _build_command(self, trial: Trial, verdict: Verdict) -> str:
        """Return the command that shows this verdict: a trial of another rule alone would not, so it runs the cell."""
        if trial.invariant in ("*", verdict.invariant):
            return self._repetition.format_trial(trial.id, verdict.invariant)
        return self._repetition.format_cell(verdict.invariant, trial.scenario.name)


class CellTrials(Sequence[TrialRow]):
    """The trials of one cell, in plan order."""

    __slots__ = ("_cell", "_cells", "_read")

    def __init__(self, cells: StoredCells, cell: Cell) -> None:
        self._cells = cells
        self._cell = cell
        self._read: list[TrialRow] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> TrialRow: ...
    @overload
    def __getitem__(self, at: slice) -> list[TrialRow]: ...
    def __getitem__(self, at: int | slice) -> TrialRow | list[TrialRow]:
        return self._rows[at]

    def __iter__(self) -> Iterator[TrialRow]:
        return iter(self._rows)

    @property
    def _rows(self) -> list[TrialRow]:
        if self._read is None:
            self._read = self._cells.read_rows(self._cell)
        return self._read


def build_run_command(
    spec_path: str,
    *,
    part: Part = "contract",
    seed: int,
    replicas: int | None = None,
    profile: str | None = None,
    recording: str | None = None,
    backend: str | None = None,
    chaos: bool = False,
    chaos_profile: str | None = None,
    sessions: str | None = None,
    live: bool = False,
) -> str:
    """Return the command that repeats a trial, without its id."""
    words = PART_COMMANDS[part].split()
    if sessions is not None:
        words.append(shlex.quote(sessions))
    if Path(spec_path) != Path("holdfast.yaml"):
        words += ["-c", shlex.quote(spec_path)]
    words += ["--seed", str(seed)]
    options = {"replicas": replicas, "profile": profile, "chaos": chaos, "live": live}
    options |= {"chaos-profile": chaos_profile, "replay": recording, "backend": backend}
    for name, value in options.items():
        if value is not None and value is not False:
            words += [f"--{name}", *([] if value is True else [shlex.quote(str(value))])]
    return " ".join(words)


def build_case_rows(cells: StoredCells, cases: Sequence[Case]) -> Sequence[CaseRow]:
    """Return every case of a run in plan order. Its trials are read one by one: an audit log may be long."""

    def build_row(number: int) -> CaseRow:
        case = cases[number]
        read = partial(_read_replica, cells, case)
        return CaseRow(case, LazySequence(read, range(len(case.replicas))))

    return LazySequence(build_row, range(len(cases)))


def _read_replica(cells: StoredCells, case: Case, number: int) -> ReplicaRow:
    replica = case.replicas[number]
    traced = cells.read_trial(replica.trial)
    prompt = interpolate(traced.trial.task.prompt, traced.trial.params)
    verdicts = tuple(_mark_unproven(verdict, case) for verdict in traced.verdicts)
    return ReplicaRow(replica, prompt, traced.seen, verdicts, cells.format_command(replica.trial))


def _mark_unproven(verdict: Verdict, case: Case) -> Verdict:
    """Return the verdict in its case: a rule that passed without meeting its fault is unproven, as in its cell."""
    if verdict.outcome != "pass" or verdict.invariant not in case.unmet:
        return verdict
    return replace(verdict, outcome="unproven", score=0.0, reason=UNMET.reason, code=UNMET.code, key=())
