"""Runs one agent of this folder against its spec, in this process, through the stages' own functions."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from holdfast.api.hunt import build_hunt_options, conclude_hunt, prepare_hunt
from holdfast.hunt.result import HuntResult
from holdfast.model.codes import RunWarning
from holdfast.model.run import CellRow
from holdfast.model.score import Cell
from holdfast.model.task import Task
from holdfast.plan import RunOptions
from holdfast.runner.job import Job
from holdfast.runner.outcome import conclude
from holdfast.runner.run import run
from holdfast.runner.start import begin
from holdfast.spec import check
from holdfast.store.rundir import RunEnd

AGENTS = Path(__file__).with_name("agents")
REPLAYS = Path(__file__).with_name("replays")
HUNTS = Path(__file__).with_name("hunts")

Version = Literal["defect", "twin"]


class Result(Struct, frozen=True):
    """What a run came to."""

    cells: tuple[Cell, ...]
    warnings: tuple[RunWarning, ...]
    exit_code: int
    reasons: dict[tuple[str, str], str]
    """By rule and scenario, what the first trial that failed says."""
    notes: tuple[str, ...] = ()
    """Of all trials, each once."""
    said: tuple[str, ...] = ()
    """Of the whole run."""

    def with_outcome(self, *outcomes: str) -> set[tuple[str, str]]:
        return {(cell.invariant, cell.scenario) for cell in self.cells if cell.outcome in outcomes}


def lay_out(name: str, version: Version, folder: Path, source: Path = AGENTS) -> Path:
    """Puts the agent and its spec, in that version, into a folder of their own."""
    shutil.copy(source / f"{name}.py", folder)
    for script in source.glob(f"{name}.txt"):  # what a simulated user says
        shutil.copy(script, folder)
    text = (source / f"{name}.yaml").read_text()
    if version == "twin":
        text = text.replace(f"endpoint: {name}:defect", f"endpoint: {name}:twin").replace("# twin only: ", "")
    spec = folder / "holdfast.yaml"
    spec.write_text(text)
    return spec


def run_spec(path: Path, tasks: tuple[Task, ...] = ()) -> Result:
    """Loads, runs, scores; asks other tasks than the file's if there are any. Problems of the file, warnings too, are
    the result's warnings."""
    checked = check(path, environ=os.environ)
    assert checked.spec is not None, checked.problems
    job = Job(
        replace(checked.spec, tasks=tasks or checked.spec.tasks),
        RunOptions(),
        os.environ,
        tuple(p.message for p in checked.problems),
    )
    rundir = begin(job, path.parent / "runs")
    try:
        running = run(job, rundir, lambda event: None)
        ended = rundir.read_end() or RunEnd(False, 0.0)
        outcome = conclude(rundir, job.spec, job.plan, running.intake.tally, job.options, ended=ended)
    finally:
        rundir.unlock()
    try:
        cells = tuple(row.cell for row in outcome.run.cells)
        reasons = _reasons(outcome.run.cells)
        said = tuple(note.text for note in outcome.run.notes)
        notes = tuple(dict.fromkeys(note for row in outcome.run.cells for one in row.trials for note in one.notes))
    finally:
        outcome.close()
    return Result(cells, tuple(running.log.warnings), outcome.score.exit_code, reasons, notes, said)


def hunt_spec(path: Path, order: int, max_trials: int) -> HuntResult:
    """What a hunt on the spec finds."""
    asked = RunOptions(part="hunt", hunt=build_hunt_options(order=order), max_trials=max_trials)
    job = prepare_hunt(path, asked)
    rundir = begin(job, path.parent / "runs")
    try:
        running = run(job, rundir, lambda event: None)
        ended = rundir.read_end() or RunEnd(False, 0.0)
        outcome = conclude(rundir, job.spec, job.plan, running.intake.tally, job.options, ended=ended)
    finally:
        rundir.unlock()
    with closing(outcome):
        return conclude_hunt(job.plan, job.options, outcome).result


def _reasons(rows: Iterable[CellRow]) -> dict[tuple[str, str], str]:
    return {
        (row.cell.invariant, row.cell.scenario): trial.reason
        for row in rows
        for trial in reversed(row.trials)
        if trial.outcome == "fail"
    }
