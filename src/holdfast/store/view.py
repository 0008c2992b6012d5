"""A stored run as reports see it. Trials are fetched from disk when they are looked at."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, overload

from holdfast.model.codec import decoder
from holdfast.model.observation import Observation
from holdfast.model.run import CellRow, TracedTrial, TrialRow
from holdfast.model.score import Cell
from holdfast.model.spec import Part
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.plan import Plan
from holdfast.score import Tally
from holdfast.spec.references import interpolate
from holdfast.store.audits import whole
from holdfast.store.blobs import unpack
from holdfast.store.rundir import RunDir, records

_verdicts = decoder(Verdict)
_trials = decoder(Trial)
_START = b'{"trial":"'
_ID = slice(len(_START), len(_START) + 12)
"""Where an observation has its trial's id, as we write it: `{"trial":"0123456789ab"`."""


DAMAGED = "the record of this trial is damaged"


class StoredCells(Sequence[CellRow]):
    """Every cell of a run. Nothing is read until a cell's trials are asked for: a run may be larger than memory."""

    def __init__(self, run: RunDir, plan: Plan, tally: Tally, command: str, verdicts: Path) -> None:
        self._plan = plan
        self._tally = tally
        self.files = Files(run, plan, command, verdicts)

    def __len__(self) -> int:
        return len(self._plan.cells)

    @overload
    def __getitem__(self, at: int) -> CellRow: ...
    @overload
    def __getitem__(self, at: slice) -> list[CellRow]: ...
    def __getitem__(self, at: int | slice) -> CellRow | list[CellRow]:
        rows = list(self)
        return rows[at]

    def __iter__(self) -> Iterator[CellRow]:
        return (self._row(cell) for cell in self._tally.cells())

    def traced(self) -> Iterator[TracedTrial]:
        """Every trial that was seen, in the order in which they were begun, one at a time."""
        return self.files.traced()

    def close(self) -> None:
        """Lets go of the files; they are opened anew if a trial is looked at again."""
        self.files.close()

    def _row(self, cell: Cell) -> CellRow:
        place = self._plan.position(cell.invariant, cell.scenario, self._plan.params_index(cell.params))
        return CellRow(cell, StoredTrials(self.files, place))


class StoredTrials(Sequence[TrialRow]):
    """The trials of one cell, in plan order."""

    def __init__(self, files: Files, cell: int) -> None:
        self._files = files
        self._cell = cell

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

    @cached_property
    def _rows(self) -> list[TrialRow]:
        return self._files.rows(self._cell)


class Files:
    """The files of a run, with an index made when the first trial is looked at."""

    def __init__(self, run: RunDir, plan: Plan, command: str, verdicts: Path) -> None:
        self._run = run
        self._plan = plan
        self._command = command
        self._trial_file = run.path / "trials.jsonl"
        self._verdict_file = verdicts
        self._open: dict[Path, BinaryIO] = {}

    def rows(self, cell: int) -> list[TrialRow]:
        """The trials of a cell; of a trial that was run twice, the last verdict."""
        given = {v.trial: v for v in map(_verdicts.decode, self._lines(self._verdict_file, self._given.get(cell, ())))}
        rows = []
        for verdict in given.values():
            if verdict.trial not in self._begun or verdict.trial not in self._seen:
                continue
            trial = _trials.decode(self._line(self._trial_file, self._begun[verdict.trial]))
            tasks = self._plan.tasks(verdict.invariant)
            if trial.task in tasks:  # else something else wrote the line
                rows.append((tasks.index(trial.task), self._row(trial, self._observation(verdict.trial), verdict)))
        rows.sort(key=lambda row: (row[0], row[1].replica))
        return [row for _, row in rows]

    def traced(self) -> Iterator[TracedTrial]:
        """Every trial that was seen, with its verdicts; only where they lie is held in memory."""
        return (self.trial(id) for id in self._begun if id in self._seen)

    def trial(self, id: str) -> TracedTrial:
        """One trial that was seen, with its verdicts."""
        trial = _trials.decode(self._line(self._trial_file, self._begun[id]))
        lines = self._lines(self._verdict_file, list(self._by_trial.get(id, {}).values()))
        return TracedTrial(trial, self._observation(id), tuple(map(_verdicts.decode, lines)))

    def again(self, id: str) -> str:
        """The command that runs a trial of every rule again."""
        return f"{self._command} --trial {id}"

    def _observation(self, trial: str) -> Observation:
        try:
            return whole(self._run, unpack(self._line(*self._seen[trial]), self._run.path / "blobs"))
        except (ValueError, RecursionError):  # something else wrote the line, which nothing is judged by here
            return Observation(trial, error=DAMAGED)

    def _row(self, trial: Trial, seen: Observation, verdict: Verdict) -> TrialRow:
        at = min(max(verdict.turn, 0), max(len(seen.turns) - 1, 0))
        turn = seen.turns[at] if seen.turns else None
        return TrialRow(
            id=trial.id,
            prompt=interpolate(trial.task.prompt, trial.params),
            answer=turn.text if turn else None,
            ending=seen.ending if not seen.error else "error",
            latency_ms=sum(t.latency_ms for t in seen.turns),
            outcome=verdict.outcome,
            reason=verdict.reason,
            score=verdict.score,
            detail=seen.error or next((t.detail for t in seen.turns if t.detail), ""),
            replica=trial.replica,
            faults=seen.ledger,
            turns=seen.turns,
            turn=at,
            marks=verdict.marks,
            details=verdict.details,
            output=seen.output,
            notes=seen.notes,
            trace=seen.trace,
            again=self._again(trial, verdict),
        )

    def _again(self, trial: Trial, verdict: Verdict) -> str:
        """A trial that was made for another rule would not show this one: then the cell is run."""
        if trial.invariant in ("*", verdict.invariant):
            return self.again(trial.id)
        return f"{self._command} --invariant {shlex.quote(verdict.invariant)} --scenario {shlex.quote(trial.scenario)}"

    @cached_property
    def _begun(self) -> dict[str, int]:
        found = records(self._trial_file, _trials.decode)
        return {trial.id: start for start, trial in found if trial.task.turns}

    @cached_property
    def _by_trial(self) -> dict[str, dict[str, int]]:
        """By trial and rule, where the verdict is; the last of several counts."""
        given: dict[str, dict[str, int]] = {}
        for start, verdict in records(self._verdict_file, _verdicts.decode):
            given.setdefault(verdict.trial, {})[verdict.invariant] = start
        return given

    @cached_property
    def _seen(self) -> dict[str, tuple[Path, int]]:
        """The last observation of every trial that was not our failure, else the last of all."""
        places: dict[str, tuple[Path, int]] = {}
        broken: set[str] = set()
        for path in self._run.observation_files():
            for start, (id, failed) in records(path, self._glance):
                if id not in places or id in broken or not failed:
                    places[id] = (path, start)
                    (broken.add if failed else broken.discard)(id)
        return places

    def _glance(self, line: bytes) -> tuple[str, bool]:
        """An observation's trial, and whether it was our failure; one as we write it is not read whole for that."""
        if b'"error":' not in line and line.startswith(_START) and line[_ID.stop : _ID.stop + 1] == b'"':
            return line[_ID].decode(), False
        seen = unpack(line, self._run.path / "blobs")
        return seen.trial, bool(seen.error)

    @cached_property
    def _given(self) -> dict[int, list[int]]:
        """By cell, where its verdicts are."""
        found: dict[int, list[int]] = {}
        rules = {rule.id for rule in self._plan.invariants}
        cells = self._cells_of_trials
        for start, verdict in records(self._verdict_file, _verdicts.decode):
            at = cells.get(verdict.trial)
            if at is not None and verdict.invariant in rules:
                found.setdefault(self._plan.position(verdict.invariant, *at), []).append(start)
        return found

    @property
    def _cells_of_trials(self) -> dict[str, tuple[str, int]]:
        """Scenario and params of every trial; only while the index is made."""
        # The plan's own string for each name, so that 100,000 trials do not hold as many copies.
        scenarios = {scenario.name: scenario.name for scenario in self._plan.scenarios}
        # A run that was forced may hold trials of another spec; one judged anew has only those that fit.
        own = self._verdict_file == self._run.verdicts()
        planned = {trial.id for trial in self._plan.trials} if own else None
        found = {}
        for _, trial in records(self._trial_file, _trials.decode):
            if trial.scenario in scenarios and (planned is None or trial.id in planned):
                with suppress(KeyError):  # params that the spec does not have: something else wrote the line
                    found[trial.id] = (scenarios[trial.scenario], self._plan.params_index(trial.params))
        return found

    def _lines(self, path: Path, starts: Sequence[int]) -> Iterator[bytes]:
        return (self._line(path, start) for start in starts)

    def _line(self, path: Path, start: int) -> bytes:
        file = self._open.get(path)
        if file is None:
            file = self._open[path] = open(path, "rb")  # noqa: SIM115  # open as long as the view
        file.seek(start)
        return file.readline()

    def close(self) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()


def command(
    spec_path: str,
    *,
    part: Part = "contract",
    seed: int,
    replicas: int | None = None,
    profile: str | None = None,
    recording: str | None = None,
    backend: str | None = None,
) -> str:
    """The command that runs a trial again, without its id."""
    words = ["holdfast", "run"] if part == "scenario" else ["holdfast", "contract", "run"]
    if Path(spec_path).name not in ("holdfast.yaml", "flakestorm.yaml") or Path(spec_path).parent != Path():
        words += ["-c", shlex.quote(spec_path)]
    words += ["--seed", str(seed)]
    if replicas is not None:
        words += ["--replicas", str(replicas)]
    if profile is not None:
        words += ["--profile", shlex.quote(profile)]
    if recording is not None:
        words += ["--replay", shlex.quote(recording)]
    if backend is not None:
        words += ["--backend", shlex.quote(backend)]
    return " ".join(words)
