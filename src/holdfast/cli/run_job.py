"""Running a prepared job and showing it: shared by every command that runs trials."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from holdfast.api.job import build_part, load_part, prepare_job, run_job
from holdfast.cli.options import build_run_options, check_options
from holdfast.cli.reports import report_step, report_unwritten, write_all_reports, write_reports
from holdfast.cli.screen_output import Screen
from holdfast.errors import UsageError, UserError
from holdfast.folders import find_config, get_runs_folder
from holdfast.model.codes import RunNote, RunWarning
from holdfast.model.spec import PartAsked, Spec
from holdfast.plan import RunOptions
from holdfast.report.formats.files import find_reporter, warn_shadowed
from holdfast.report.safe import to_one_line
from holdfast.runner.job import format_spec_warnings
from holdfast.runner.past.last_failed import find_failed, list_runs
from holdfast.runner.start import resume_job
from holdfast.store.run_folders import format_name, list_stored_files
from holdfast.store.rundir import RunDir

if TYPE_CHECKING:
    from holdfast.runner.job import Job
    from holdfast.runner.outcome import RunOutcome

MakePart = Callable[[Spec, Mapping[str, str]], tuple[Spec, tuple[RunWarning, ...]]]
"""Derives a spec from the spec of a part, with warnings."""


def prepare(
    config: Path | None,
    options: RunOptions,
    *,
    resume: str | None = None,
    force: bool = False,
    outputs: Sequence[Path] = (),
    last_failed: bool = False,
    make: MakePart = build_part,
) -> Job:
    """Prepare a job. Everything that can be rejected is rejected here, before the agent is started."""
    for path in outputs:
        find_reporter(path)
    if options.record is not None:
        _check_recording(options.record)
    if resume is not None:
        if last_failed:
            hint = "a resumed run keeps its selection"
            raise UsageError("--lf and --resume cannot be combined", hint=hint, code="options-conflict")
        return _prepare_resume(config, resume, force, options)
    path = find_config(config)
    spec, problems = load_part(path, options)
    if last_failed and options.seed is None:
        # Another seed would create other mutations and fire other faults.
        last = next(list_runs(get_runs_folder(spec.file), spec), None)
        if last is not None:
            options = replace(options, seed=last.read_manifest().options.seed)
            spec, problems = load_part(path, options)
    spec, more_warnings = make(spec, os.environ)
    warnings = [
        *format_spec_warnings(spec, problems),
        *more_warnings,
        *check_options(spec, options),
        *filter(None, map(warn_shadowed, outputs)),
    ]
    if last_failed:
        options = _select_failed(spec, options, warnings)
    return prepare_job(spec, options, warnings)


def _prepare_resume(config: Path | None, resume: str, force: bool, options: RunOptions) -> Job:
    """Prepare the rest of a stored run; raise UsageError if it has several parts."""
    rundir = RunDir.find(get_runs_folder(config).absolute(), resume)
    if rundir.read_manifest().parts:
        hint = f"continue it: holdfast ci --resume {quote(format_name(rundir.path))}"
        raise UsageError(f"run {rundir.id} was started by holdfast ci", hint=hint, code="run-unusable")
    return resume_job(rundir.get_single(), config=config, force=force, options=options, environ=os.environ)


def _select_failed(spec: Spec, options: RunOptions, warnings: list[RunWarning]) -> RunOptions:
    """Select what failed in the last run. If there is nothing, select everything and add a warning."""
    run, failed = find_failed(get_runs_folder(spec.file), spec, os.environ)
    if not run:
        text = "--lf: no run of this file is stored here; everything is run"
    elif not failed:
        text = f"--lf: nothing failed up to run {run}; everything is run"
    else:
        text = f"--lf: only what failed up to run {run} is run"
    warnings.append(RunWarning("last-failed", text))
    return replace(options, select=replace(options.select, failed=failed))


def _check_recording(path: Path) -> None:
    """Reject a file that is not a recording: adding to it would destroy it."""
    from holdfast.planes.llm.sources.cassette import Cassette
    from holdfast.runner.export import check_writable

    check_writable("--record", path)
    if path.exists() and path.stat().st_size:
        try:
            Cassette(path, str)
        except UserError as wrong:
            problem = f"--record {path}: the file exists and is not a recording ({wrong})"
            hint = "name a new file, or a recording to add to"
            raise UsageError(problem, hint=hint, code="recording-unusable") from wrong


def execute(job: Job, screen: Screen, *, report: bool, at: RunDir | None = None) -> RunOutcome:
    """Run, score and store the job. `at` is the folder of a new run that is a part of a larger one."""
    listen = screen.build_listener()
    for warning in job.warnings:
        screen.warn(warning)
    try:
        return run_job(job, listen, report=report, at=at, beat=screen.tick, each_trial=screen.hears_trials)
    except BaseException:
        screen.close()
        raise


def execute_and_report(job: Job, screen: Screen, outputs: Sequence[Path] = (), *, report: bool = True) -> RunOutcome:
    """Execute the only job of a command, and write every requested report."""
    return write_all_reports(execute(job, screen, report=report), job, outputs)


def run_and_show(
    *,
    part: PartAsked,
    config: Path | None,
    outputs: tuple[Path, ...],
    otlp: str | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    dry_run: bool,
    no_report: bool,
    annotations: bool,
    cached: bool,
    resume: str | None,
    force: bool,
    last_failed: bool,
    make: MakePart = build_part,
    **raw_options: Any,
) -> int:
    """Run `run` or `contract run` with the given options, and return the exit code."""
    if otlp is not None:
        from holdfast.runner.export import check_target

        check_target(otlp)
    screen = Screen(as_json=as_json, quiet=quiet, verbose=verbose)
    if cached and (resume is not None or last_failed):
        option = "--lf" if last_failed else "--resume"
        hint = f"{option} runs only the remaining trials"
        raise UsageError(f"--cached and {option} cannot be combined", hint=hint, code="options-conflict")
    options = build_run_options(part=part, **raw_options)
    job = prepare(config, options, resume=resume, force=force, outputs=outputs, last_failed=last_failed, make=make)
    if dry_run:
        return screen.print_dry_run(job)
    outcome = _run_or_reuse(job, screen, outputs, report=not no_report, cached=cached)
    screen.finish(outcome)
    report_step([outcome.run], outcome.score, outcome.run.id, annotations=annotations)
    if otlp is not None:
        _export_traces(outcome, otlp, screen)
    return report_unwritten(outcome)


def _export_traces(outcome: RunOutcome, target: str, screen: Screen) -> None:
    """Export the traces. A collector that rejects them does not change the verdict."""
    from holdfast.runner.export import export

    trouble = export(outcome, target, os.environ)
    if trouble is not None:
        screen.warn(RunWarning("traces-unsent", trouble))


def _run_or_reuse(job: Job, screen: Screen, outputs: Sequence[Path], *, report: bool, cached: bool) -> RunOutcome:
    """Run the job; with `cached`, reuse a stored run if nothing has changed since."""
    if cached:
        stored = find_cached_outcome(job, outputs)
        if stored:
            return write_reports(stored, outputs, step_summary=True)
    return execute_and_report(job, screen, outputs, report=report)


def find_cached_outcome(job: Job, outputs: Sequence[Path]) -> RunOutcome | None:
    """Return the stored run that a new one would repeat, if there is one; otherwise give the job its digest.

    It gets none if the spec names variables: their values may be secret, and no run stores them. UsageError if
    Holdfast cannot know whether anything changed.
    """
    from holdfast.runner.outcome import load_run
    from holdfast.runner.past import cached

    cached.refuse_uncacheable(job.spec, job.options)
    variables = ", ".join(dict.fromkeys(cached.list_variables(job)))
    if variables:
        print(f"--cached: every trial runs, because {variables} may have a different value today", file=sys.stderr)
        return None
    runs = get_runs_folder(job.spec.file)
    job.files = cached.digest_files(job, [*outputs, *list_stored_files(runs)])
    run = cached.find_cached_run(runs, job)
    if run is None:
        changed = ", ".join(cached.find_changed_variables(runs, job))
        if changed:
            print(f"--cached: every trial runs, because these variables changed: {changed}", file=sys.stderr)
        return None
    outcome = load_run(run, environ=os.environ)
    summary = f"cached: run {run.id} of {outcome.run.started[:16].replace('T', ' ')} UTC, no trial ran"
    print(summary, file=sys.stderr)
    note = RunNote("cached", f"{summary}; models and services may answer differently today")
    return replace(outcome, run=replace(outcome.run, notes=(*outcome.run.notes, note)))


def print_score(value: float | None, reasons: Sequence[str], exit_code: int, *, exit_zero: bool) -> int:
    """Print the number alone, and on stderr why it does not pass. Return the exit code."""
    if value is not None:
        print(f"{value:.2f}")
    for reason in reasons if exit_code else ():
        print(to_one_line(reason), file=sys.stderr)
    return 0 if exit_zero else exit_code


def score_contract(
    *, config: Path | None, resume: str | None, force: bool, last_failed: bool, exit_zero: bool, **raw_options: Any
) -> int:
    """Run the contract, print only its score, and return the exit code."""
    options = build_run_options(**raw_options)
    job = prepare(config, options, resume=resume, force=force, last_failed=last_failed)
    score = execute_and_report(job, Screen(silent=True), report=False).score  # the number is all that is shown
    return print_score(score.value, score.reasons, score.exit_code, exit_zero=exit_zero)
