"""Running a prepared job and showing it: shared by `run`, `contract run`, `contract score` and `demo`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from holdfast.api.config_file import find_config
from holdfast.api.job import PreparedJob, build_part, load_part, prepare_job, run_prepared
from holdfast.cli.options import build_run_options, check_options
from holdfast.cli.screen_output import Screen
from holdfast.errors import HoldfastError, UsageError, UserError
from holdfast.folders import get_runs_folder
from holdfast.model.codes import RunWarning
from holdfast.model.run import Run
from holdfast.model.spec import PartAsked, Spec
from holdfast.plan import RunOptions
from holdfast.report.formats.files import find_reporter, get_reporter, get_suffix, warn_shadowed, write
from holdfast.report.safe import to_one_line
from holdfast.report.wording import format_verdict
from holdfast.runner.job import Job, format_spec_warnings
from holdfast.runner.past.last_failed import find_failed, list_runs
from holdfast.runner.start import resume_job
from holdfast.store.run_folders import format_name
from holdfast.store.rundir import RunDir

if TYPE_CHECKING:
    from holdfast.protocols.reporter import Reporter
    from holdfast.runner.outcome import RunOutcome

MakePart = Callable[[Spec, Mapping[str, str]], tuple[Spec, tuple[RunWarning, ...]]]
"""Derives a spec from the spec of a part, with warnings."""
HARNESS = 3
"""The exit code of a harness error."""


def prepare(
    config: Path | None,
    resume: str | None,
    force: bool,
    options: RunOptions,
    outputs: Sequence[Path],
    *,
    last_failed: bool = False,
    make: MakePart = build_part,
) -> PreparedJob:
    """Prepare a job. Everything that can be rejected is rejected here, before the agent is started."""
    for path in outputs:
        find_reporter(path)
    if options.record is not None:
        _check_recording(options.record)
    if resume is not None and last_failed:
        raise UsageError(
            "--lf and --resume cannot be combined", hint="a resumed run keeps its selection", code="options-conflict"
        )
    if resume is not None:
        return _prepare_resume(config, resume, force, options)
    path = find_config(config)
    spec, problems = load_part(path, options)
    if last_failed and options.seed is None and (seed := _read_last_seed(spec)) is not None:
        options = replace(options, seed=seed)
        spec, problems = load_part(path, options)
    spec, made = make(spec, os.environ)
    warnings = [
        *format_spec_warnings(spec, problems),
        *made,
        *check_options(spec, options),
        *filter(None, map(warn_shadowed, outputs)),
    ]
    if last_failed:
        options = _select_failed(spec, options, warnings)
    return prepare_job(spec, options, warnings)


def _prepare_resume(config: Path | None, resume: str, force: bool, options: RunOptions) -> PreparedJob:
    """Prepare the rest of a stored run; raise UsageError if it has several parts."""
    rundir = RunDir.find(get_runs_folder(config).absolute(), resume)
    if rundir.read_manifest().parts:
        hint = f"continue it: holdfast ci --resume {quote(format_name(rundir.path))}"
        raise UsageError(f"run {rundir.id} was started by holdfast ci", hint=hint, code="run-unusable")
    rundir = rundir.get_single()
    return PreparedJob(resume_job(rundir, config=config, force=force, options=options, environ=os.environ), rundir)


def _read_last_seed(spec: Spec) -> int | None:
    """Read the seed of the last run of this file: another seed would create other mutations and fire other faults."""
    last = next(iter(list_runs(get_runs_folder(spec.file), spec)), None)
    return last.read_manifest().options.seed if last else None


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
            hint = "name a new file, or a recording to add to"
            raise UsageError(
                f"--record {path}: the file exists and is not a recording ({wrong})",
                hint=hint,
                code="recording-unusable",
            ) from wrong


def execute(
    prepared: PreparedJob,
    screen: Screen,
    outputs: Sequence[Path],
    *,
    report: bool,
    at: RunDir | None = None,
) -> RunOutcome:
    """Run, score and store the job, and write every requested report.

    `at` is the folder of a new run that is a part of a whole one.
    """
    job = prepared.job
    listen = screen.build_listener()
    for warning in job.warnings:
        screen.warn(warning)
    try:
        outcome = run_prepared(prepared, listen, report=report, at=at, beat=screen.tick, each_trial=screen.hears_trials)
    except BaseException:
        screen.close()
        raise
    if job.spec.part == "hunt":
        return outcome  # its reports are written when it is concluded
    try:
        declared = {} if at is not None else _get_declared_report(job, outcome.run)
        return write_reports(outcome, outputs, declared, step_summary=at is None)
    except BaseException:
        outcome.close()
        raise


def report_hunt(job: Job, outcome: RunOutcome) -> RunOutcome:
    """Write the reports of a concluded hunt and return its outcome."""
    return write_reports(outcome, (), _get_declared_report(job, outcome.run), step_summary=True)


def write_reports(
    outcome: RunOutcome,
    outputs: Sequence[Path],
    declared: Mapping[Path, str] = {},
    *,
    step_summary: bool = False,
) -> RunOutcome:
    """Write the reports and return the outcome, with any errors: a report that fails does not hide the verdict.

    Each entry of `declared` has its format.
    """
    if outcome.run.page:
        trouble = _try_write_report(outcome, Path(outcome.run.page))
        if trouble:
            print(f"warning: {trouble}", file=sys.stderr)
            outcome = replace(outcome, run=replace(outcome.run, page=""))
    reports = [(path, None) for path in outputs] + [(path, get_reporter(by)) for path, by in declared.items()]
    missing = [trouble for path, by in reports if (trouble := _try_write_report(outcome, path, by))]
    step = os.environ.get("GITHUB_STEP_SUMMARY")
    if step and step_summary:
        from holdfast.report.formats.markdown import Markdown

        append_summary(Path(step), next(iter(Markdown().render(outcome.run).values())))
    return replace(outcome, unwritten=tuple(missing))


def _try_write_report(outcome: RunOutcome, path: Path, by: Reporter | None = None) -> str:
    """Write a report, and return the error message if that fails."""
    try:
        write(outcome.run, path, by)
    except HoldfastError as refused:
        return to_one_line(str(refused))
    return ""


def report_unwritten(outcome: RunOutcome) -> int:
    """Print reports that could not be written, and return the exit code: not 0 if one is missing."""
    return print_missing(outcome.unwritten, outcome.score.exit_code)


def print_missing(missing: Sequence[str], exit_code: int = 0) -> int:
    """Print why reports are missing, and return the exit code, which is then not 0."""
    for trouble in missing:
        print(f"error: {trouble}", file=sys.stderr)
    return exit_code or (HARNESS if missing else 0)


def append_summary(step: Path, rendered: Iterable[bytes]) -> None:
    """Append to the summary of a CI job. Errors are ignored: the verdict does not depend on it."""
    try:
        with open(step, "ab") as file:
            file.writelines(rendered)
    except OSError as refused:
        print(f"warning: cannot write {to_one_line(str(step))}: {refused.strerror}", file=sys.stderr)


def _get_declared_report(job: Job, run: Run) -> dict[Path, str]:
    """Return the report that the spec's `output:` section requests, with its format."""
    output = job.spec.output
    if not output or output["format"] == "terminal":
        return {}
    suffix = get_suffix(output["format"])
    root = Path(job.spec.path).parent
    name = output.get("filename_template") or "holdfast-{run}"
    started = run.started.replace(":", "-")
    filled = name.replace("{run}", run.id.replace("/", "-")).replace("{timestamp}", started)
    filled = filled.replace("{date}", started[:10]).replace("{time}", started[11:19])
    path = root / output["path"] / filled
    return {path if path.suffix == suffix else path.with_name(path.name + suffix): output["format"]}


def send_traces(outcome: RunOutcome, target: str, screen: Screen) -> None:
    """Export the run's traces. A collector that rejects them does not change the verdict."""
    from holdfast.runner.export import export

    trouble = export(outcome, target, os.environ)
    if trouble is not None:
        screen.warn(RunWarning("traces-unsent", trouble))


def run_and_show(
    *,
    part: PartAsked,
    config: Path | None,
    resume: str | None,
    force: bool,
    last_failed: bool,
    outputs: tuple[Path, ...],
    otlp: str | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    dry_run: bool,
    no_report: bool,
    annotations: bool,
    cached: bool,
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
    prepared = prepare(config, resume, force, options, outputs, last_failed=last_failed, make=make)
    if dry_run:
        return screen.print_dry_run(prepared.job, prepared.rundir)
    with closing(_run_or_reuse(prepared, screen, outputs, report=not no_report, cached=cached)) as outcome:
        screen.finish(outcome)
        report_step(outcome, annotations=annotations)
        if otlp is not None:
            send_traces(outcome, otlp, screen)
    return report_unwritten(outcome)


def _run_or_reuse(
    prepared: PreparedJob, screen: Screen, outputs: Sequence[Path], *, report: bool, cached: bool
) -> RunOutcome:
    """Run the job; with `cached`, reuse a stored run if nothing has changed since."""
    if cached:
        from holdfast.cli.cached_outcome import find_cached_outcome

        stored, files = find_cached_outcome(prepared.job, outputs)
        if stored:
            return write_reports(stored, outputs, step_summary=True)
        prepared = replace(prepared, files=files)
    return execute(prepared, screen, outputs, report=report)


def report_step(outcome: RunOutcome, *, annotations: bool = False) -> None:
    """Write the result for a GitHub Actions step: annotations and outputs."""
    if not annotations and os.environ.get("GITHUB_ACTIONS") != "true":
        return
    from holdfast.cli.github_step import print_annotations, set_outputs

    score = outcome.score
    print_annotations(outcome.run, os.environ, asked=annotations)
    set_outputs(os.environ, score=score.value, verdict=format_verdict(score), run=outcome.run.id)
