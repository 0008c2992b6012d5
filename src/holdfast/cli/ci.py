"""Runs every part of a file and shows the result: what `ci`, `score`, `demo`, `merge` and `show` have in common."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.api.whole_plan import WholePlan, plan_whole
from holdfast.api.whole_run import WholeOutcome, run_whole
from holdfast.cli import options as shared
from holdfast.cli import screen as terminal
from holdfast.cli.reports import append_summary, print_missing, report_step, write_reports
from holdfast.cli.run_job import execute, find_cached_outcome, print_score
from holdfast.cli.screen import print_document
from holdfast.cli.screen_output import Screen
from holdfast.errors import UsageError
from holdfast.model.spec import Part
from holdfast.report.causes.cause_words import build_entries
from holdfast.report.formats.whole_files import check_output, render_markdown, select_failed, write_whole
from holdfast.report.overall import build_document, format_summary
from holdfast.runner.job import Job
from holdfast.runner.outcome import RunOutcome
from holdfast.store.rundir import RunDir


def run_and_show_parts(
    plan: WholePlan, screen: Screen, *, report: bool, cached: bool = False, outputs: Sequence[Path] = ()
) -> WholeOutcome:
    """Run the parts of a plan, each with its page if `report` is set, and show each."""

    def run_part(part: Part, job: Job, at: RunDir) -> RunOutcome:
        screen.print_heading(part)
        if cached and job.resumed is None and part != "hunt":
            stored = find_cached_outcome(job, outputs)
            if stored is not None:
                at.path.parent.mkdir(parents=True, exist_ok=True)
                at.path.symlink_to(os.path.relpath(Path(stored.run.path).absolute(), at.path.parent))
                return stored
        outcome = execute(job, screen, report=report, at=at)
        return outcome if part == "hunt" else write_reports(outcome)  # that of a hunt follows when it is concluded

    def show_part(outcome: RunOutcome) -> None:
        if outcome.run.part == "hunt":
            write_reports(outcome)
        screen.print_part(outcome)

    return run_whole(plan, run_part, show_part)


def show_stored_whole(combined: WholeOutcome, screen: Screen, page: str) -> None:
    """Print the failures of each part of a stored or merged run, then the overall result."""
    for part, outcome in combined.outcomes.items():
        screen.print_part(outcome, heading=part)
    show_overall(combined, screen, page)


def show_overall(combined: WholeOutcome, screen: Screen, page: str) -> None:
    """Print the overall result."""
    if screen.as_json:
        document = build_document(combined.overall)
        for part, outcome in combined.outcomes.items():
            document["parts"][part]["causes"] = list(build_entries(outcome.run))
        print_document(document)
        return
    text = format_summary(
        combined.overall,
        color=terminal.should_use_color(sys.stdout),
        quiet=screen.quiet,
        verbose=screen.verbose,
        page=page,
        sandbox=next((one.run.sandbox for one in combined.outcomes.values()), ""),
        running=combined.running,
    )
    sys.stdout.write(text if screen.quiet else f"\n{text}")


def write_overall(combined: WholeOutcome, outputs: Sequence[Path], *, report: bool) -> list[str]:
    """Write the overall page and every requested report. Errors are printed."""
    runs = {part: outcome.run for part, outcome in combined.outcomes.items()}
    home = combined.whole.path
    trouble = write_whole(combined.overall, runs, home / "report.html", home=home) if report else ""
    if trouble:
        print(f"warning: {trouble}", file=sys.stderr)
    return [trouble for path in outputs if (trouble := write_whole(combined.overall, runs, path, home=home))]


def report_whole_step(combined: WholeOutcome, *, annotations: bool) -> None:
    """Report the results of all parts to a GitHub Actions step: summary, annotations and outputs."""
    if os.environ.get("GITHUB_STEP_SUMMARY"):
        runs = {part: outcome.run for part, outcome in combined.outcomes.items()}
        append_summary(render_markdown(combined.overall, select_failed(combined.overall, runs)))
    views = [outcome.run for outcome in combined.outcomes.values()]
    report_step(views, combined.overall, combined.overall.run, annotations=annotations)


def run_ci(
    *,
    config: Path | None,
    resume: str | None,
    force: bool,
    outputs: tuple[Path, ...],
    as_json: bool,
    quiet: bool,
    verbose: bool,
    no_report: bool,
    annotations: bool,
    baseline: str | None,
    cached: bool,
    **raw_options: Any,
) -> int:
    """Run and show every part, and return the exit code."""
    for path in outputs:
        check_output(path)
    if cached and resume is not None:
        hint = "--resume runs the trials that are left"
        raise UsageError("--cached and --resume cannot be combined", hint=hint, code="options-conflict")
    options = shared.build_run_options(part="ci", **raw_options)
    plan = plan_whole(config, options, resume, force, warn=shared.check_options, baseline=baseline)
    screen, report = Screen(as_json=as_json, quiet=quiet, verbose=verbose), not no_report
    combined = run_and_show_parts(plan, screen, report=report, cached=cached, outputs=outputs)
    missing = write_overall(combined, outputs, report=report)
    report_whole_step(combined, annotations=annotations)
    show_overall(combined, screen, combined.page_path if report else "")
    return print_missing(missing, combined.overall.exit_code)


def score_overall(*, config: Path | None, resume: str | None, force: bool, exit_zero: bool, **raw_options: Any) -> int:
    """Run every part, print only the overall score, and return the exit code."""
    options = shared.build_run_options(part="ci", **raw_options)
    plan = plan_whole(config, options, resume, force, warn=shared.check_options)
    last = run_and_show_parts(plan, Screen(silent=True), report=False).overall  # the number is all that is shown
    return print_score(last.score, last.reasons, last.exit_code, exit_zero=exit_zero)
