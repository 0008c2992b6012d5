"""holdfast show"""

from __future__ import annotations

import os
import sys
from contextlib import closing

import click
from msgspec import to_builtins

from holdfast.cli import options as shared
from holdfast.cli.screen import get_width, print_document, should_use_color
from holdfast.cli.stored_run import find_trial, find_trial_in_run, show_stored
from holdfast.errors import UsageError
from holdfast.folders import get_runs_folder
from holdfast.report.page.trial import build_trial
from holdfast.report.terminal.paint import get_painter
from holdfast.report.terminal.trial_story import build_timeline, format_story
from holdfast.runner.past.stored import load_run
from holdfast.store.rundir import RunDir


@click.command(name="show")
@shared.runs_option
@click.argument("what", metavar="[RUN|TRIAL]", default="latest", shell_complete=shared.complete_from("runs"))
@click.argument("run", metavar="[RUN]", required=False, shell_complete=shared.complete_from("runs"))
@shared.as_json
@click.option("-q", "--quiet", is_flag=True, help="Print only what failed, the score and the verdict.")
@click.option("-v", "--verbose", is_flag=True, help="Print every failure and every text in full.")
def command(what: str, run: str | None, as_json: bool, quiet: bool, verbose: bool) -> int:
    """Show a stored run, or one trial: calls, faults, SQL and files on one timeline, and the rules.

    \b
      holdfast show                     the newest run
      holdfast show 0007 -v
      holdfast show 7f3a2c91            a trial, by the start of its id
      holdfast show 7f3a2c91 0007       the trial in that run
    """
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
            return show_stored(rundir, (), as_json=as_json, quiet=quiet, verbose=verbose)
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
    with closing(load_run(run, environ=os.environ)) as outcome:
        files = outcome.cells.files
        try:
            document = build_trial(outcome.run, files.read_trial(trial), files.format_command(trial))
        except KeyError:
            raise UsageError(
                f"trial {trial} of run {run.id} has not ended", hint="holdfast view follows it", code="trial-running"
            ) from None
    if as_json:
        print_document({**document, "run": run.id, "timeline": to_builtins(build_timeline(document))})
        return 0
    paint = get_painter(should_use_color(sys.stdout))
    shared.show_lines(format_story(document, run.id, paint, get_width(sys.stdout), whole=verbose))
    return 0
