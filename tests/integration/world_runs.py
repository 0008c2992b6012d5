"""Runs whole scenarios in real worlds, in this process."""

import os
import textwrap
from dataclasses import dataclass

import pytest
import yaml
from msgspec.structs import replace

from holdfast.errors import UserError
from holdfast.plan import RunOptions
from holdfast.runner.job import Job
from holdfast.runner.run import run
from holdfast.runner.start import begin
from holdfast.spec import LoadOptions, load
from holdfast.store.record import read_observations, read_verdicts

BACKENDS = pytest.mark.parametrize("backend", ["bubblewrap", "process"])
HOLDS = {"it_ends": {"description": "it ends well", "check": {"type": "completes"}}}


@dataclass
class Ran:
    """What came of one run."""

    folder: object
    cases: list
    seen: list
    notes: tuple
    """The texts of the notes of the run and of its world."""

    @property
    def case(self):
        (case,) = self.cases
        return case

    @property
    def only(self):
        (seen,) = self.seen
        return seen

    @property
    def text(self):
        return self.only.turns[0].text or ""

    @property
    def verdicts(self):
        return [*read_verdicts(self.folder / "verdicts-1.jsonl")]

    @property
    def lines(self):
        return self.text.splitlines()

    def forbidden(self):
        return {one.rule: (one.violated, one.details) for one in self.only.forbidden}

    def audit(self, kind):
        return [event.details for event in self.only.audit if event.type == kind]


def spec_of(command, /, **sections):
    """A small scenario around a command; every other section as it is given."""
    agent = command if isinstance(command, dict) else {"type": "command", "command": textwrap.dedent(command)}
    base = {"version": 1, "id": "t", "task": {"prompt": "go"}, "agent": agent, "invariants": HOLDS, "setup": {}}
    return {**base, **sections}


def ran(folder, spec, *, backend="bubblewrap", environ=None, files=None, tasks=(), **options):
    """Runs a spec, written beside these files, in a folder; asks other tasks than its own if there are any."""
    for name, content in (files or {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(content))
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    environ = {**os.environ, **(environ or {})}
    loaded, _ = load(folder / "spec.yaml", environ=environ, options=LoadOptions(part="scenario"))
    given = RunOptions(backend=backend, preflight=False, part="scenario", **options)
    job = Job(replace(loaded, tasks=tuple(tasks) or loaded.tasks), given, environ)
    rundir = begin(job, folder / ".holdfast" / "runs")
    try:
        running = run(job, rundir, lambda event: None)
    except UserError as refused:
        if "sandbox" in str(refused):
            pytest.skip(f"no sandbox can be created here: {refused}")
        raise
    notes = tuple(note.text for note in (*running.log.notes, *running.log.background))
    return Ran(rundir.path, [*running.intake.tally.cases.iter_cases()], [*read_observations(rundir)], notes)
