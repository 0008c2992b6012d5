"""`--lf`: what failed in the last run of a spec."""

from __future__ import annotations

from pathlib import Path

from holdfast.errors import UserError
from holdfast.model.codec import decoder
from holdfast.model.spec import Spec
from holdfast.model.verdict import Verdict
from holdfast.plan.select import FailedTask
from holdfast.store.record import trials
from holdfast.store.rundir import RunDir, records

_verdicts = decoder(Verdict)


def last_run(runs: Path, spec: Spec) -> RunDir | None:
    """The newest run of this file by the same command; None if none is stored."""
    numbered = [path for path in runs.iterdir() if path.name.isdigit()] if runs.is_dir() else []
    for path in sorted(numbered, key=lambda path: int(path.name), reverse=True):
        run = RunDir(path)
        try:
            manifest = run.manifest()
        except (UserError, OSError):
            continue  # one that was left by another version, or by hand
        place = Path(manifest.root) / Path(manifest.spec_path).name
        if place == Path(spec.path).resolve() and manifest.options.part == spec.part:
            return run
    return None


def failed_tasks(run: RunDir) -> tuple[FailedTask, ...]:
    """What was asked in its trials that a rule failed on, or that could not be judged for an error of ours."""
    asked = {trial.id: trial for trial in trials(run)}
    last = {(found.trial, found.invariant): found for _, found in records(run.verdicts(), _verdicts.decode)}
    failed = (found for found in last.values() if found.outcome in ("fail", "error") and found.trial in asked)
    return tuple(
        dict.fromkeys(
            FailedTask(found.invariant, asked[found.trial].scenario, asked[found.trial].task.turns) for found in failed
        )
    )
