"""Finds stored runs, trials and causes, and shows them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from holdfast.api.whole_run import load_whole
from holdfast.cli import options as shared
from holdfast.cli.ci import show_stored_whole, write_overall
from holdfast.cli.reports import print_missing, report_unwritten, write_reports
from holdfast.cli.screen import get_width, print_document, should_use_color
from holdfast.cli.screen_output import Screen
from holdfast.errors import UsageError, UserError
from holdfast.folders import get_runs_folder
from holdfast.hunt.result import HuntedCause
from holdfast.plan.select import SHORTEST
from holdfast.report.formats.files import find_reporter, write
from holdfast.report.formats.whole_files import check_output
from holdfast.report.page.trial import build_trial
from holdfast.report.safe import get_painter
from holdfast.report.terminal.trial_story import build_timeline, format_story
from holdfast.runner.hunt_view import read_hunt
from holdfast.runner.outcome import load_run
from holdfast.runner.past.rejudge import judge_again
from holdfast.runner.whole import get_single_part
from holdfast.store.record import read_trials
from holdfast.store.run_folders import list_parts, list_stored_runs
from holdfast.store.rundir import RunDir, is_in_progress


def show_stored(run: RunDir, outputs: Sequence[Path], screen: Screen) -> int:
    """Write the requested reports. Without any, or with JSON, show the run. Return the exit code."""
    if run.read_manifest().parts:
        return _show_whole(run, outputs, screen)
    for path in outputs:
        find_reporter(path)
    outcome = load_run(run, environ=os.environ)
    if is_in_progress(run):
        outcome = replace(outcome, run=replace(outcome.run, running=True))
    for path in outputs:
        write(outcome.run, path)
    if not outputs or screen.as_json:
        screen.finish(outcome)
    return 0


def find_trial(what: str) -> tuple[RunDir, str] | None:
    """Find the newest run with a trial whose id starts so, and its full id; None if there is none."""
    if len(what) < SHORTEST or not set(what.lower()) <= set("0123456789abcdef"):
        return None
    return next(
        filter(None, (find_trial_in_run(RunDir(path), what) for path in reversed(list_stored_runs(get_runs_folder())))),
        None,
    )


CAUSE = "hunt-"
"""The prefix of cause names."""


def find_cause(cause: str) -> tuple[RunDir, HuntedCause]:
    """Find the newest run whose hunt found the cause, and a trial that shows it; raise UsageError if there is none."""
    folders = (part for run in reversed(list_stored_runs(get_runs_folder())) for part in list_parts(run) or (run,))
    for run in map(RunDir, folders):
        result = read_hunt(run)
        for one in result.causes if result is not None else ():
            if one.id.startswith(cause) and one.trial:
                return run, one
    raise UsageError(
        f"no stored hunt found the cause {cause}", hint="holdfast hunt finds them again", code="cause-unknown"
    )


def find_trial_in_run(run: RunDir, what: str) -> tuple[RunDir, str] | None:
    """Find the part of the run with the trial, and its full id; raise UsageError if several ids have this prefix."""
    for part in run.parts or (run,):
        try:
            ids = list(dict.fromkeys(trial.id for trial in read_trials(part) if trial.id.startswith(what.lower())))
        except (OSError, UserError):
            continue  # a run that cannot be read any more has no trial to show
        if len(ids) > 1:
            raise UsageError(
                f"{len(ids)} trials of run {part.id} begin with {what}", hint=", ".join(ids[:8]), code="trial-ambiguous"
            )
        if ids:
            return part, ids[0]
    return None


def _show_whole(run: RunDir, outputs: Sequence[Path], screen: Screen) -> int:
    """Show a run of several parts, or write its reports, and return the exit code."""
    for path in outputs:
        check_output(path)
    combined = load_whole(run)
    missing = write_overall(combined, outputs, report=False)
    if not outputs or screen.as_json:
        page = combined.page_path if (run.path / "report.html").is_file() else ""
        show_stored_whole(combined, screen, page)
    return print_missing(missing)


def show(what: str, run: str | None, *, as_json: bool, quiet: bool, verbose: bool) -> int:
    """Show a run, or one trial of it."""
    if run is None:
        try:
            rundir = RunDir.find(get_runs_folder(), what)
        except UsageError as unknown:
            where = find_trial(what)
            if where is None:
                raise UsageError(
                    f"there is no run or trial called {what!r}", hint=unknown.hint, code="name-unknown"
                ) from None
        else:
            return show_stored(rundir, (), Screen(as_json=as_json, quiet=quiet, verbose=verbose))
    else:
        where = find_trial_in_run(RunDir.find(get_runs_folder(), run), what)
        if where is None:
            raise UsageError(
                f"run {run} has no trial that begins with {what}",
                hint=f"holdfast show {run} lists them",
                code="trial-unknown",
            )
    return _show_trial(*where, as_json=as_json, verbose=verbose)


def _show_trial(run: RunDir, trial: str, *, as_json: bool, verbose: bool) -> int:
    outcome = load_run(run, environ=os.environ)
    cells = outcome.cells
    try:
        document = build_trial(outcome.run, cells.read_trial(trial), cells.format_command(trial))
    except KeyError:
        raise UsageError(
            f"trial {trial} of run {run.id} has not ended", hint="holdfast view follows it", code="trial-running"
        ) from None
    if as_json:
        print_document({**document, "run": run.id, "timeline": to_builtins(build_timeline(document))})
        return 0
    paint = get_painter(should_use_color(sys.stdout))
    print(*format_story(document, run.id, paint, get_width(sys.stdout), whole=verbose), sep="\n")
    return 0


def report(run: str, *, outputs: tuple[Path, ...], as_json: bool, verbose: bool) -> int:
    """Show a stored run, or write its reports."""
    return show_stored(RunDir.find(get_runs_folder(), run), outputs, Screen(as_json=as_json, verbose=verbose))


def judge(
    run: str, *, config: Path | None, outputs: tuple[Path, ...], as_json: bool, quiet: bool, **raw_options: Any
) -> int:
    """Judge a stored run again, and return the exit code."""
    for path in outputs:
        find_reporter(path)
    rundir = get_single_part(RunDir.find(get_runs_folder(), run))
    outcome = judge_again(rundir, config=config, options=shared.build_run_options(**raw_options), environ=os.environ)
    reported = write_reports(outcome, outputs)
    Screen(as_json=as_json, quiet=quiet).finish(reported)
    return report_unwritten(reported)
