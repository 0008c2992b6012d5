"""holdfast merge DIR..."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click
from msgspec.structs import replace

from holdfast.api.hunt import conclude_hunt
from holdfast.api.whole_run import conclude_merged
from holdfast.cli import options as shared
from holdfast.cli.ci import report_whole_step, show_stored_whole, write_overall
from holdfast.cli.hunt_job import show_hunt
from holdfast.cli.reports import print_missing, report_unwritten, write_reports
from holdfast.cli.screen_output import Screen
from holdfast.folders import get_runs_folder, shorten_path
from holdfast.plan import build_plan
from holdfast.report.formats.files import find_reporter
from holdfast.report.formats.whole_files import check_output
from holdfast.runner.outcome import load_run, store_score
from holdfast.runner.past.merge import MergedRun, find_shards, merge
from holdfast.runner.start import load_stored_spec
from holdfast.store.rundir import RunDir


@click.command(name="merge")
@shared.runs_option
@click.argument("paths", nargs=-1, required=True, type=shared.FILE, metavar="DIR...")
@click.option("--partial", is_flag=True, help="Join the shards that exist; --resume runs the others.")
@shared.whole_files
@shared.as_json
@shared.quiet
@shared.verbose
def command(
    paths: tuple[Path, ...], partial: bool, outputs: tuple[Path, ...], as_json: bool, quiet: bool, verbose: bool
) -> int:
    """Join the shards of a run into one run and score it.

    \b
      holdfast contract run --shard 1/4        one shard on each machine
      holdfast merge shard-1 shard-2 shard-3 shard-4

    DIR is the run directory of a shard, or a folder that contains such directories.
    """
    shards = find_shards(paths)
    has_parts = bool(shards[0].manifest.parts)
    for path in outputs:
        check_output(path) if has_parts else find_reporter(path)
    screen = Screen(as_json=as_json, quiet=quiet, verbose=verbose)
    merged = merge(shards, get_runs_folder().absolute(), partial=partial)
    if has_parts:
        return _show_whole(merged, outputs, screen)
    if shards[0].manifest.options.part == "hunt":
        return _show_hunt(merged.run, outputs, as_json=as_json)
    return _show(merged.run, outputs, screen)


def _show(run: RunDir, outputs: Sequence[Path], screen: Screen) -> int:
    """Judge and show the run, and return the exit code."""
    outcome = load_run(run, environ=os.environ)
    store_score(run, outcome.score)
    page = shorten_path(run.path / "report.html")
    reported = write_reports(replace(outcome, run=replace(outcome.run, page=page)), outputs, step_summary=True)
    screen.finish(reported)
    return report_unwritten(reported)


def _show_hunt(run: RunDir, outputs: Sequence[Path], *, as_json: bool) -> int:
    """Show the causes and the coverage of all shards together, and return the exit code."""
    manifest = run.read_manifest()
    spec, _ = load_stored_spec(run, manifest, None, os.environ)
    plan = build_plan(spec, manifest.options.select)
    outcome = load_run(run, environ=os.environ)
    hunted = conclude_hunt(plan, manifest.options, outcome)
    reported = write_reports(hunted.outcome, outputs, step_summary=True)
    show_hunt(hunted, spec.path, as_json=as_json)
    return report_unwritten(reported)


def _show_whole(merged: MergedRun, outputs: Sequence[Path], screen: Screen) -> int:
    """Judge and show every part of the run and the overall result, and return the exit code."""
    combined = conclude_merged(merged.run, merged.skipped_parts, write_reports)
    missing = write_overall(combined, outputs, report=True)
    report_whole_step(combined, annotations=False)
    show_stored_whole(combined, screen, combined.page_path)
    return print_missing(missing, combined.overall.exit_code)
