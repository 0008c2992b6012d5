"""holdfast ci | score: runs every part of a file. `demo`, `merge` and `show` show such runs, too."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from holdfast.api.job import PreparedJob
from holdfast.api.whole_plan import WholePlan, plan_whole
from holdfast.api.whole_run import WholeOutcome, run_whole
from holdfast.cli import options as shared
from holdfast.cli import screen as terminal
from holdfast.cli.cached_outcome import find_cached_outcome
from holdfast.cli.github_step import print_annotations, set_outputs
from holdfast.cli.run_job import append_summary, execute, print_missing, write_reports
from holdfast.cli.screen import print_document
from holdfast.cli.screen_output import Screen
from holdfast.errors import UsageError
from holdfast.model.spec import Part
from holdfast.report.causes.cause_words import build_entries
from holdfast.report.formats.whole_files import check_output, render_markdown, select_failed, write_whole
from holdfast.report.overall import build_document, format_summary
from holdfast.report.safe import can_show_signs, to_one_line
from holdfast.report.wording import format_verdict
from holdfast.runner.outcome import RunOutcome
from holdfast.store.rundir import RunDir


def run_and_show_parts(
    plan: WholePlan, screen: Screen, *, report: bool, cached: bool = False, outputs: Sequence[Path] = ()
) -> WholeOutcome:
    """Run the parts of a plan, each with its page if `report` is set, and show each."""

    def run_part(part: Part, prepared: PreparedJob, at: RunDir) -> RunOutcome:
        screen.print_heading(part)
        if cached and prepared.rundir is None and part != "hunt":
            stored, files = find_cached_outcome(prepared.job, outputs)
            if stored is not None:
                at.path.parent.mkdir(parents=True, exist_ok=True)
                at.path.symlink_to(os.path.relpath(Path(stored.run.path).absolute(), at.path.parent))
                return stored
            prepared = replace(prepared, files=files)
        return execute(prepared, screen, (), report=report, at=at)

    def show_part(outcome: RunOutcome) -> None:
        if outcome.run.part == "hunt":
            write_reports(outcome, ())
        screen.print_part(outcome)

    return run_whole(plan, run_part, show_part)


def show_stored_whole(found: WholeOutcome, screen: Screen, page: str) -> None:
    """Print the failures of each part of a stored or merged run, then the overall result."""
    for part, outcome in found.outcomes.items():
        screen.print_part(outcome, heading=part)
    show_overall(found, screen, page)


def show_overall(found: WholeOutcome, screen: Screen, page: str) -> None:
    """Print the overall result."""
    if screen.as_json:
        document = build_document(found.overall)
        for part, outcome in found.outcomes.items():
            document["parts"][part]["causes"] = list(build_entries(outcome.run))
        print_document(document)
        return
    text = format_summary(
        found.overall,
        color=terminal.should_use_color(sys.stdout),
        quiet=screen.quiet,
        verbose=screen.verbose,
        unicode=can_show_signs(sys.stdout.encoding),
        page=page,
        sandbox=next((one.run.sandbox for one in found.outcomes.values()), ""),
        running=found.running,
    )
    sys.stdout.write(text if screen.quiet else f"\n{text}")


def write_overall(found: WholeOutcome, outputs: Sequence[Path], *, report: bool) -> list[str]:
    """Write the overall page and every requested report. Errors are printed."""
    runs = {part: outcome.run for part, outcome in found.outcomes.items()}
    home = found.whole.path
    trouble = write_whole(found.overall, runs, home / "report.html", home=home) if report else ""
    if trouble:
        print(f"warning: {trouble}", file=sys.stderr)
    return [trouble for path in outputs if (trouble := write_whole(found.overall, runs, path, home=home))]


def report_whole_step(found: WholeOutcome, *, annotations: bool) -> None:
    """Write the results of all parts for a GitHub Actions step: annotations and outputs."""
    step = os.environ.get("GITHUB_STEP_SUMMARY")
    if step:
        runs = {part: outcome.run for part, outcome in found.outcomes.items()}
        append_summary(Path(step), render_markdown(found.overall, select_failed(found.overall, runs)))
    if not annotations and os.environ.get("GITHUB_ACTIONS") != "true":
        return
    for outcome in found.outcomes.values():
        print_annotations(outcome.run, os.environ, asked=annotations)
    last = found.overall
    set_outputs(os.environ, score=last.score, verdict=format_verdict(last), run=last.run)


@click.command(name="ci", cls=shared.HeadedCommand)
@shared.add_whole_options
@click.option(
    "--baseline",
    metavar="RUN|last",
    help="Fail if a rule got worse since this run.",
    shell_complete=shared.complete_from("runs"),
)
@shared.add_whole_output
def ci_command(
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
    """Run every part of the file and decide whether the agent may ship.

    The parts are the task, the contract, mutations, chaos and replays. Each trial runs once; the overall score is the
    weighted mean of the parts that ran. --min-score applies to it.

    \b
      holdfast ci
      holdfast ci --min-score 90 -o reports
      holdfast ci --baseline last
      holdfast ci --resume 0007
    """
    for path in outputs:
        check_output(path)
    if cached and resume is not None:
        hint = "--resume runs the trials that are left"
        raise UsageError("--cached and --resume cannot be combined", hint=hint, code="options-conflict")
    options = shared.build_run_options(part="ci", **raw_options)
    plan = plan_whole(config, options, resume, force, warn=shared.check_options, baseline=baseline)
    screen, report = Screen(as_json=as_json, quiet=quiet, verbose=verbose), not no_report
    with closing(run_and_show_parts(plan, screen, report=report, cached=cached, outputs=outputs)) as found:
        missing = write_overall(found, outputs, report=report)
        report_whole_step(found, annotations=annotations)
        show_overall(found, screen, found.page_path if report else "")
    return print_missing(missing, found.overall.exit_code)


@click.command(name="score", cls=shared.HeadedCommand)
@shared.add_whole_options
@click.option("--exit-zero", is_flag=True, help="Exit 0 regardless of the verdict.")
def score_command(config: Path | None, resume: str | None, force: bool, exit_zero: bool, **raw_options: Any) -> int:
    """Print only the overall score; the exit codes are those of `ci`.

    \b
      test "$(holdfast score)" = 100.00
    """
    plan = plan_whole(
        config, shared.build_run_options(part="ci", **raw_options), resume, force, warn=shared.check_options
    )
    with closing(run_and_show_parts(plan, Screen(silent=True), report=False)) as found:
        pass  # the number is all that is shown
    if found.overall.score is not None:
        print(f"{found.overall.score:.2f}")
    for reason in found.overall.reasons if found.overall.exit_code else ():
        print(to_one_line(reason), file=sys.stderr)
    return 0 if exit_zero else found.overall.exit_code
