"""holdfast runs"""

from __future__ import annotations

import sys

import click
from msgspec.structs import asdict, replace

from holdfast.cli import options as shared
from holdfast.cli import screen
from holdfast.cli.screen import print_document
from holdfast.folders import get_runs_folder
from holdfast.report.terminal.paint import get_painter
from holdfast.report.terminal.run_table import format_table
from holdfast.runner.past.history import open_history
from holdfast.store.past_run import PastRun
from holdfast.store.run_locks import is_written
from holdfast.store.run_names import get_run_folder


@click.command(name="runs")
@shared.runs_option
@click.option("-n", "count", type=click.IntRange(1), default=20, metavar="N", help="Number of runs.", show_default=True)
@shared.as_json
def command(count: int, as_json: bool) -> int:
    """List the stored runs, the newest first.

    \b
      holdfast runs
      holdfast runs -n 5 --json
    """
    with open_history(get_runs_folder(), shared.warn) as found:
        runs = found.read_runs()
    ids = list(dict.fromkeys(run.id.partition("/")[0] for run in runs))[:count]
    listed = [_update_state(run) for run in runs if run.id.partition("/")[0] in ids]
    if as_json:
        rows = [{name: value for name, value in asdict(run).items() if name != "cells"} for run in listed]
        print_document({"runs": rows})
        return 0
    if not runs:
        print(f"no run is stored in {get_runs_folder()}")
        return 0
    shared.show_lines(
        format_table(_sort_runs(listed), screen.get_width(sys.stdout), get_painter(screen.should_use_color(sys.stdout)))
    )
    more = len({run.id.partition("/")[0] for run in runs}) - len(ids)
    if more:
        print(f"{more} more: holdfast runs -n {more + len(ids)}")
    return 0


def _update_state(run: PastRun) -> PastRun:
    """Set the state of a run that has not ended: running or killed. The history does not store that."""
    if not run.is_unended:
        return run
    return replace(run, state="running" if is_written(get_run_folder(get_runs_folder(), run.id)) else "killed")


def _sort_runs(runs: list[PastRun]) -> list[PastRun]:
    """Sort the runs newest first, each run before its parts."""
    return sorted(runs, key=lambda run: (-run.order[0], run.order[1]))
