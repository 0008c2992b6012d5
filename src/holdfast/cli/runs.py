"""holdfast runs"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from holdfast.cli import options as shared

if TYPE_CHECKING:
    from holdfast.store.past_run import PastRun


@click.command(name="runs")
@click.option("-n", "count", type=click.IntRange(1), default=20, metavar="N", help="The newest N.", show_default=True)
@shared.as_json
def command(count: int, as_json: bool) -> int:
    """List the stored runs, the newest first.

    \b
      holdfast runs
      holdfast runs -n 5 --json
    """
    from holdfast.cli import screen
    from holdfast.report.paint import painter
    from holdfast.report.run_table import table
    from holdfast.runner.history import history
    from holdfast.runner.start import RUNS

    with history(RUNS, shared.warn) as found:
        runs = found.runs()
    kept = list(dict.fromkeys(run.id.partition("/")[0] for run in runs))[:count]
    shown = [run for run in runs if run.id.partition("/")[0] in kept]
    if as_json:
        from msgspec.structs import asdict

        from holdfast.cli.json_output import print_document

        rows = [{name: value for name, value in asdict(run).items() if name != "cells"} for run in shown]
        print_document({"runs": rows})
        return 0
    if not runs:
        print(f"no run is stored in {RUNS}")
        return 0
    shared.show_lines(table(_parts_below(shown), screen.width(sys.stdout), painter(screen.wants_color(sys.stdout))))
    more = len({run.id.partition("/")[0] for run in runs}) - len(kept)
    if more:
        print(f"{more} more: holdfast runs -n {more + len(kept)}")
    return 0


def _parts_below(runs: list[PastRun]) -> list[PastRun]:
    """The newest first, and of a run of several parts the run itself before its parts."""
    return sorted(runs, key=lambda run: (-run.order[0], run.order[1]))
