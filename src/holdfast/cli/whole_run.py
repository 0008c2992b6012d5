"""Show a run of several parts: `ci`, `score`, `demo`, and `run` if the file declares two parts."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from holdfast.api.job import PreparedJob
from holdfast.api.whole_plan import WholePlan
from holdfast.api.whole_run import WholeOutcome, run_whole
from holdfast.cli import screen as terminal
from holdfast.cli.cached_outcome import find_cached_outcome
from holdfast.cli.github_step import print_annotations, set_outputs
from holdfast.cli.run_job import append_summary, execute, write_reports
from holdfast.cli.screen import print_document
from holdfast.cli.screen_output import Screen
from holdfast.model.spec import Part
from holdfast.report.causes.cause_json import build_entries
from holdfast.report.formats.whole_files import render_markdown, select_failed, write_whole
from holdfast.report.overall import build_document, format_summary, format_verdict
from holdfast.report.safe import can_show_signs
from holdfast.runner.outcome import RunOutcome
from holdfast.store.rundir import RunDir


class ShownParts:
    """Runs and shows the parts of a plan, each with its page if `report` is set."""

    def __init__(self, screen: Screen, *, report: bool, cached: bool, outputs: Sequence[Path]) -> None:
        self._screen = screen
        self._report = report
        self._cached = cached
        self._outputs = outputs

    def start_part(self, part: Part) -> None:
        self._screen.print_heading(part)

    def run(self, prepared: PreparedJob, at: RunDir) -> RunOutcome:
        if not self._cached or prepared.rundir is not None or prepared.job.spec.part == "hunt":
            return execute(prepared, self._screen, (), report=self._report, at=at)
        again, files = find_cached_outcome(prepared.job, self._outputs)
        if again is None:
            return execute(replace(prepared, files=files), self._screen, (), report=self._report, at=at)
        at.path.parent.mkdir(parents=True, exist_ok=True)
        at.path.symlink_to(os.path.relpath(Path(again.run.path).absolute(), at.path.parent))
        return again

    def end_part(self, outcome: RunOutcome) -> None:
        if outcome.run.part == "hunt":
            write_reports(outcome, ())
        self._screen.print_part(outcome)


def run_and_show_parts(
    plan: WholePlan, screen: Screen, *, report: bool, cached: bool = False, outputs: Sequence[Path] = ()
) -> WholeOutcome:
    """Run the parts of a plan and show each."""
    return run_whole(plan, ShownParts(screen, report=report, cached=cached, outputs=outputs))


def show_stored_whole(found: WholeOutcome, *, as_json: bool, quiet: bool, verbose: bool, page: str) -> None:
    """Print the failures of each part of a stored or merged run, then the overall result."""
    screen = Screen(as_json=as_json, quiet=quiet, verbose=verbose)
    for part, outcome in found.outcomes.items():
        screen.print_stored_part(part, outcome)
    show_overall(found, as_json=as_json, quiet=quiet, verbose=verbose, page=page)


def show_overall(found: WholeOutcome, *, as_json: bool, quiet: bool, verbose: bool, page: str) -> None:
    """Print the overall result."""
    if as_json:
        document = build_document(found.overall)
        for part, outcome in found.outcomes.items():
            document["parts"][part]["causes"] = list(build_entries(outcome.run))
        print_document(document)
        return
    text = format_summary(
        found.overall,
        color=terminal.should_use_color(sys.stdout),
        quiet=quiet,
        verbose=verbose,
        unicode=can_show_signs(sys.stdout.encoding),
        page=page,
        sandbox=next((one.run.sandbox for one in found.outcomes.values()), ""),
        running=found.running,
    )
    sys.stdout.write(text if quiet else f"\n{text}")


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
