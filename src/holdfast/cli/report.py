"""holdfast report RUN"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli import options as shared

if TYPE_CHECKING:
    from holdfast.store.rundir import RunDir


@click.command(name="report")
@click.argument("run")
@shared.output_files
@shared.as_json
@click.option("-v", "--verbose", is_flag=True, help="Every failure in full.")
def command(run: str, outputs: tuple[Path, ...], as_json: bool, verbose: bool) -> int:
    """Show a stored run again, or render it in another format.

    \b
      holdfast report 0007
      holdfast report 0007 -o run.html -o run.xml
    """
    from holdfast.cli.run_job import Screen
    from holdfast.report.files import reporter, write
    from holdfast.runner.start import RUNS
    from holdfast.runner.stored import look
    from holdfast.store.rundir import RunDir

    found = RunDir.find(RUNS, run)
    if found.manifest().parts:
        return _whole(found, outputs, as_json=as_json)
    for path in outputs:
        reporter(path)
    with closing(look(found, environ=os.environ)) as outcome:
        for path in outputs:
            write(outcome.run, path)
        if not outputs or as_json:
            Screen(as_json=as_json, verbose=verbose).finish(outcome)
    return 0


def _whole(run: RunDir, outputs: tuple[Path, ...], *, as_json: bool) -> int:
    """A run of several parts."""
    from holdfast.cli.whole_run import look_whole, show_overall, write_overall
    from holdfast.report.whole_files import check_output

    for path in outputs:
        check_output(path)
    with closing(look_whole(run)) as found:
        missing = write_overall(found, outputs, report=False)
        if not outputs or as_json:
            page = run.path / "report.html"
            show_overall(found, as_json=as_json, quiet=False, page=found.shown_page if page.is_file() else "")
    for trouble in missing:
        click.echo(f"error: {trouble}", err=True)
    return 3 if missing else 0
