"""holdfast merge DIR..."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import click

from holdfast.cli import options as shared


@click.command(name="merge")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR...")
@click.option("--partial", is_flag=True, help="Join what is there; --resume runs what is missing.")
@shared.output_files
@shared.as_json
@click.option("-q", "--quiet", is_flag=True, help="Only the score and the verdict.")
@click.option("-v", "--verbose", is_flag=True, help="Every failure in full.")
def command(
    paths: tuple[Path, ...], partial: bool, outputs: tuple[Path, ...], as_json: bool, quiet: bool, verbose: bool
) -> int:
    """Join the shards of a run into one, and judge the whole.

    \b
      holdfast contract run --shard 1/4        on each machine its own
      holdfast merge shard-1 shard-2 shard-3 shard-4

    DIR is the run directory of a shard, or a folder that has such directories in it.
    """
    from msgspec.structs import replace

    from holdfast.cli.run_job import ending, with_reports
    from holdfast.cli.screen_output import Screen
    from holdfast.report.files import reporter
    from holdfast.runner.merge import merge
    from holdfast.runner.outcome import shown_path, store_score
    from holdfast.runner.start import RUNS
    from holdfast.runner.stored import look

    for path in outputs:
        reporter(path)
    run = merge(paths, RUNS.absolute(), partial=partial)
    with closing(look(run, environ=os.environ)) as outcome:
        store_score(run, outcome.score)
        page = shown_path(run.path / "report.html")
        shown = with_reports(replace(outcome, run=replace(outcome.run, page=page)), outputs, step_summary=True)
        Screen(as_json=as_json, quiet=quiet, verbose=verbose).finish(shown)
    return ending(shown)
