"""Runs and shows hunts and maps: what `hunt`, `shrink`, `map` and `merge` do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

from holdfast.api.hunt import (
    EndedHunt,
    add_live_counts,
    build_hunt_options,
    conclude_hunt,
    prepare_confirmation,
    prepare_hunt,
    prepare_shrink,
)
from holdfast.cli import options as shared
from holdfast.cli.reports import report_unwritten, write_all_reports, write_reports
from holdfast.cli.run_job import execute, prepare
from holdfast.cli.screen import print_document
from holdfast.cli.screen_output import Screen
from holdfast.cli.stored import find_trial
from holdfast.errors import UsageError
from holdfast.folders import find_config, get_runs_folder, shorten_path
from holdfast.hunt.fault_map import build_fault_map
from holdfast.hunt.result import HuntResult
from holdfast.model.codec import to_builtins
from holdfast.plan import RunOptions
from holdfast.report.safe import to_one_line
from holdfast.report.terminal.hunt import dump_scenarios, format_hunt, format_map
from holdfast.runner.job import Job
from holdfast.runner.outcome import RunOutcome, apply_hunt
from holdfast.runner.past.hunted import read_newest_scores, read_tried_faults
from holdfast.runner.past.last_failed import list_runs
from holdfast.store.rundir import MAP, forget_hunt, seal_hunt, write_json

MAX_TRIALS = 300
BUDGETS = ("max_trials", "max_cost", "max_time_s")


def _set_max_trials(options: RunOptions) -> RunOptions:
    return options if options.max_trials else replace(options, max_trials=MAX_TRIALS)


def _prepare_resumed(config: Path | None, resume: str, force: bool, options: RunOptions) -> Job:
    """Return the job of a stored hunt. Its budgets stay as they were, unless they are given again."""
    job = prepare(config, options, resume=resume, force=force)
    run = job.resumed
    assert run is not None
    forget_hunt(run)
    manifest = run.read_manifest()
    budgets = {name: getattr(job.options, name) or getattr(manifest.options, name) for name in BUDGETS}
    job.options = replace(job.options, **budgets)
    run.write_manifest(replace(manifest, options=replace(manifest.options, **budgets)))
    return job


def _run_and_show(job: Job, write: Path | None, screen: Screen) -> int:
    """Run and show the hunt, and return the exit code."""
    if write is not None:
        _read_causes(write)
    hunted = run_hunt(job, screen)
    if job.options.hunt.confirm_live and hunted.result.causes:
        live = prepare_confirmation(job, hunted.result)
        hunted = add_live_counts(hunted, run_hunt(live, Screen(as_json=screen.as_json, silent=True)).planner)
    outcome = write_all_reports(hunted.outcome, job)
    show_hunt(hunted, job.spec.path, as_json=screen.as_json)
    if write is not None:
        write_causes(write, hunted.result)
    return report_unwritten(outcome)


def run_hunt(job: Job, screen: Screen) -> EndedHunt:
    """Run the trials of a hunt."""

    def show_calm(outcome: RunOutcome) -> None:
        outcome = write_all_reports(outcome, job)
        if not screen.as_json:
            screen.finish(outcome)

    outcome = execute(job, screen, report=True)
    hunted = conclude_hunt(job.plan, job.options, outcome, show_calm)
    screen.close()
    return hunted


def show_hunt(hunted: EndedHunt, spec_path: str, *, as_json: bool) -> None:
    """Print the causes and the coverage, as text or JSON."""
    if as_json:
        print_document({**to_builtins(hunted.result), "run": hunted.run.id, "exit_code": hunted.result.exit_code})
        return
    print(*format_hunt(hunted.result, spec_path, shorten_path(hunted.run.path)), sep="\n")


def write_causes(path: Path, result: HuntResult) -> None:
    """Add the scenarios of the causes that the file does not have yet."""
    stored = _read_causes(path)
    names = {entry["name"] for entry in stored}
    new = [cause.scenario for cause in result.causes if cause.id not in names]
    if not new:
        return
    # The new scenarios are appended as text, so comments and layout of the file stay. The result counts only if it
    # reads back as the old list followed by the new entries.
    before = path.read_text("utf-8").rstrip() + "\n" if stored else "chaos_matrix:\n"
    text = before + _format_scenarios(new)
    try:
        appended = yaml.safe_load(text) == {"chaos_matrix": [*stored, *new]}
    except yaml.YAMLError:
        appended = False
    # A list that is laid out differently, such as [] or {…}, is written again.
    path.write_text(text if appended else "chaos_matrix:\n" + _format_scenarios([*stored, *new]), "utf-8")


def _format_scenarios(scenarios: Sequence[dict[str, Any]]) -> str:
    return "".join(f"  {line}\n" for line in dump_scenarios(scenarios).splitlines())


def _read_causes(path: Path) -> list[dict[str, Any]]:
    """Return the scenarios that the file has; raise UsageError if more could not be added to it."""
    if not path.exists() or not path.stat().st_size:
        return []
    try:
        loaded = yaml.safe_load(path.read_text("utf-8"))
        scenarios = [{**entry, "name": entry["name"]} for entry in loaded["chaos_matrix"] or ()]
    except (OSError, ValueError, TypeError, KeyError, yaml.YAMLError):
        scenarios, loaded = [], {}
    if list(loaded) != ["chaos_matrix"]:
        problem = f"--write {to_one_line(str(path))}: the file exists and is not a list of scenarios"
        raise UsageError(problem, hint="name a new file, or one written by --write", code="file-unusable")
    return scenarios


def hunt(
    *,
    config: Path | None,
    resume: str | None,
    force: bool,
    write: Path | None,
    cause: str,
    order: int,
    sweep: str,
    confirm_live: int,
    as_json: bool,
    quiet: bool,
    **raw_options: Any,
) -> int:
    """Hunt in a file, or resume a stored hunt, and return the exit code."""
    goal = build_hunt_options(order=order, sweep=sweep, confirm_live=confirm_live)
    options = shared.build_run_options(part="hunt", hunt=goal, **raw_options)
    if resume is not None:
        job = _prepare_resumed(config, resume, force, options)
    else:
        job = prepare_hunt(find_config(config), _set_max_trials(options), cause=cause)
    return _run_and_show(job, write, Screen(as_json=as_json, quiet=quiet))


def shrink(
    *,
    trial: str,
    config: Path | None,
    resume: str | None,
    force: bool,
    write: Path | None,
    as_json: bool,
    quiet: bool,
    **raw_options: Any,
) -> int:
    """Reduce a failed trial to its cause, or resume that, and return the exit code."""
    options = shared.build_run_options(part="hunt", **raw_options)
    if resume is not None:
        job = _prepare_resumed(config, resume, force, options)
    elif (place := find_trial(trial)) is not None:
        job = prepare_shrink(*place, _set_max_trials(options), config)
    else:
        problem = f"no stored trial begins with {trial}"
        raise UsageError(problem, hint="holdfast runs lists the runs", code="trial-unknown")
    return _run_and_show(job, write, Screen(as_json=as_json, quiet=quiet))


def show_map(*, config: Path | None, as_json: bool, **raw_options: Any) -> int:
    """Ask every prompt once without faults, and show the calls and which faults were tried there."""
    raw_options = {"replicas": 1, **{name: value for name, value in raw_options.items() if value is not None}}
    options = shared.build_run_options(part="hunt", hunt=build_hunt_options(purpose="map"), **raw_options)
    job = prepare_hunt(find_config(config), options)
    screen = Screen(as_json=as_json, quiet=True)
    hunted = run_hunt(job, screen)
    spec = job.spec
    runs = list(list_runs(get_runs_folder(spec.file), spec, every_part=True))
    fault_map = replace(
        build_fault_map(hunted.planner, read_tried_faults(runs)), scores=tuple(read_newest_scores(runs))
    )
    write_json(hunted.run.path / MAP, fault_map)
    seal_hunt(hunted.run)
    outcome = write_reports(apply_hunt(hunted.outcome, hunted.run))
    if as_json:
        print_document(
            {**to_builtins(fault_map), "percent": round(fault_map.coverage.percent, 2), "run": hunted.run.id}
        )
    else:
        print(*format_map(fault_map, outcome.run.page), sep="\n")
    return 0
