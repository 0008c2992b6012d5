"""holdfast shell | clean: the sandboxes that --keep left, and the leftovers of killed processes."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import click

from holdfast.cli import options as shared
from holdfast.errors import SpecError, UsageError, UserError
from holdfast.execute.revisit import StoredTrial, revisit
from holdfast.folders import KEPT, get_own_folder
from holdfast.model.scenario import CALM
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.plan import RunOptions
from holdfast.planes.gateway_lock import remove_leftovers
from holdfast.processes.scratch import sweep
from holdfast.reading.durations import parse_duration
from holdfast.report.safe import to_one_line
from holdfast.runner.job import is_trusted
from holdfast.runner.start import load_stored_spec
from holdfast.secrets.values import resolve_secrets
from holdfast.store.record import read_observations, read_trials, read_verdicts
from holdfast.store.rundir import RunDir, list_verdict_files
from holdfast.world import kept_world
from holdfast.world.kept_world import ABOUT, KeptWorld, list_kept_worlds, read_kept_world
from holdfast.world.sandbox import limits
from holdfast.world.supervisors import container_owner


@click.command(name="shell", context_settings={"ignore_unknown_options": True})
@shared.runs_option
@click.argument("trial", required=False)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def shell_command(trial: str | None, words: tuple[str, ...]) -> int:
    """Open a shell in the sandbox of a failed trial, if the run used --keep.

    The shell runs in a new sandbox with the agent's workspace, environment and services, which contain the same data.
    No fault is active. Holdfast reports on stderr what it could not restore, and puts the logs into /kept. Your changes
    are discarded.

    \b
      holdfast shell                                        list the trials
      holdfast shell 3f2a                                   a shell
      holdfast shell 3f2a -- sh -c 'psql $DATABASE_URL'     one command; exits with its exit code
    """
    worlds = list_kept_worlds(get_own_folder() / KEPT)
    if trial is None:
        for folder in worlds:
            print(_describe_trial(folder))
        return 0
    return _open(_find_kept_world(trial, worlds), words)


def _describe_trial(folder: Path) -> str:
    """Describe the trial: its scenario, the rules that it did not pass, and what it did that is forbidden."""
    try:
        run = RunDir(Path(read_kept_world(folder).run))
        scenario = next((trial.scenario for trial in read_trials(run) if trial.id == folder.name), "")
        verdicts = [one for path in list_verdict_files(run) for one in read_verdicts(path) if one.trial == folder.name]
        seen = next((one for one in read_observations(run, traces=False) if one.trial == folder.name), None)
    except (OSError, UserError):
        return f"{folder.name}  (its run is gone)"
    rules = [f"{one.invariant} {one.outcome}" for one in verdicts if one.outcome not in ("pass", "n/a")]
    if seen is not None:
        rules += [f"{one.rule} fail" for one in seen.forbidden if one.violated]
        rules += ["harness error"] if seen.error else []
    failed = ", ".join(dict.fromkeys(rules)) or "every rule passed"
    return to_one_line(f"{folder.name}  run {run.id}  {scenario}  {failed}")


def _open(folder: Path, words: tuple[str, ...]) -> int:
    world = read_kept_world(folder)
    try:
        return asyncio.run(revisit(folder, world, _read_trial(world), os.environ, words, _print_note))
    except asyncio.CancelledError:  # by a signal: the world is gone
        return 2


def _read_trial(world: KeptWorld) -> StoredTrial:
    """Return the stored trial. If the run or the spec is gone, print the reason; then only the trial's id is known."""
    run = RunDir(Path(world.run))
    try:
        spec, _ = load_stored_spec(run, run.read_manifest(), None, os.environ)
        trial = {one.id: one for one in read_trials(run) if one.id == world.trial}[world.trial].build_trial({})
    except (UserError, OSError, KeyError) as refused:
        _print_note(f"its services and secrets are not available: run {run.id} cannot be read: {_explain(refused)}")
        return StoredTrial(Spec(world.spec, AgentSpec("command")), Trial(world.trial, "contract", CALM, Task(("",))))
    return StoredTrial(spec, trial, _resolve_secrets(spec))


def _resolve_secrets(spec: Spec) -> dict[str, str]:
    """Resolve each secret again as the run did; commands only run if the spec is in the project folder."""
    root = Path(spec.path).resolve().parent
    trusted = is_trusted(spec, RunOptions())
    values: dict[str, str] = {}
    for secret in spec.world.secrets if spec.world else ():
        try:
            values |= resolve_secrets([secret], os.environ, root, spec.seed, commands=trusted)
        except UserError as refused:
            _print_note(f"secret {secret.name} is not available: {refused}")
    return values


def _explain(refused: Exception) -> str:
    if isinstance(refused, SpecError) and refused.problems:
        return f"{refused.problems[0].path} {refused.problems[0].message}".strip()
    return f"it has no trial {refused}" if isinstance(refused, KeyError) else str(refused)


def _print_note(text: str) -> None:
    print(f"holdfast: {to_one_line(text)}", file=sys.stderr, flush=True)


def _find_kept_world(trial: str, worlds: list[Path]) -> Path:
    """Find a kept world by its trial or its folder; raise UsageError if none or several match."""
    if (Path(trial) / ABOUT).is_file():
        return Path(trial)
    matches = [folder for folder in worlds if folder.name == trial] or [f for f in worlds if f.name.startswith(trial)]
    if len(matches) == 1:
        return matches[0]
    hint = f"available: {', '.join(folder.name for folder in worlds[:20])}" if worlds else "run with --keep first"
    raise UsageError(
        f"{'no' if not matches else 'more than one'} kept sandbox is called {trial}",
        hint=hint,
        code="kept-world-invalid",
    )


@click.command(name="clean")
@shared.runs_option
@click.option("--kept", is_flag=True, help="Also remove all sandboxes kept by --keep.")
@click.option("--older-than", metavar="TIME", help="Also remove kept sandboxes older than this: 36h, 30m.")
def clean_command(kept: bool, older_than: str | None) -> int:
    """Remove leftovers of killed Holdfast processes. Runs, and anything in use, stay.

    \b
      holdfast clean
      holdfast clean --kept
      holdfast clean --older-than 24h
    """
    removed = [*map(str, sweep()), *map(str, remove_leftovers(get_own_folder()))]
    removed += [f"control group {name}" for name in limits.sweep()]
    removed += [f"container {name}" for name in container_owner.sweep()]
    age_s = 0.0 if kept else _parse_age(older_than)
    if age_s is not None:
        removed += map(str, kept_world.clear_kept_worlds(get_own_folder() / KEPT, age_s, time.time()))
    for name in removed:
        print(f"removed {to_one_line(name)}")
    if not removed:
        print("nothing was left behind")
    return 0


def _parse_age(text: str | None) -> float | None:
    """Parse a duration; raise UsageError if it is not one."""
    if text is None:
        return None
    duration = parse_duration(text)
    if duration is None:
        raise UsageError(
            f"--older-than {text}: not a duration", hint="write it as 90s, 30m or 24h", code="argument-invalid"
        )
    return duration / 1000
