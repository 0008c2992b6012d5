"""The trial of a kept world, read from its run, with the secrets that can be resolved again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from holdfast.errors import SpecError, UserError
from holdfast.execute.revisit import StoredTrial
from holdfast.model.scenario import CALM
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.plan import RunOptions
from holdfast.runner.job import is_trusted
from holdfast.runner.start import load_stored_spec
from holdfast.secrets.values import resolve_secrets
from holdfast.store.record import read_trials
from holdfast.store.rundir import RunDir
from holdfast.world.kept_world import KeptWorld


def read_trial(world: KeptWorld, environ: Mapping[str, str], tell: Callable[[str], None]) -> StoredTrial:
    """Return the stored trial. If the run or the spec is gone, only its id is known, and `tell` receives the reason."""
    run = RunDir(Path(world.run))
    try:
        spec, _ = load_stored_spec(run, run.read_manifest(), None, environ)
        trial = {one.id: one for one in read_trials(run) if one.id == world.trial}[world.trial].build_trial({})
    except (UserError, OSError, KeyError) as refused:
        tell(f"its services and secrets are not available: run {run.id} cannot be read: {_explain(refused)}")
        return StoredTrial(Spec(world.spec, AgentSpec("command")), Trial(world.trial, "contract", CALM, Task(("",))))
    return StoredTrial(spec, trial, _resolve_secrets(spec, environ, tell))


def _resolve_secrets(spec: Spec, environ: Mapping[str, str], tell: Callable[[str], None]) -> dict[str, str]:
    """Resolve each secret again as the run did; commands only run if the spec is in the project folder."""
    root = Path(spec.path).resolve().parent
    trusted = is_trusted(spec, RunOptions())
    values: dict[str, str] = {}
    for secret in spec.world.secrets if spec.world else ():
        try:
            values |= resolve_secrets([secret], environ, root, spec.seed, commands=trusted)
        except UserError as refused:
            tell(f"secret {secret.name} is not available: {refused}")
    return values


def _explain(refused: Exception) -> str:
    if isinstance(refused, SpecError) and refused.problems:
        return f"{refused.problems[0].path} {refused.problems[0].message}".strip()
    return f"it has no trial {refused}" if isinstance(refused, KeyError) else str(refused)
