"""holdfast report RUN"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import click

from holdfast.cli import options as shared


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

    for path in outputs:
        reporter(path)
    with closing(look(RunDir.find(RUNS, run), environ=os.environ)) as outcome:
        for path in outputs:
            write(outcome.run, path)
        if not outputs or as_json:
            Screen(as_json=as_json, verbose=verbose).finish(outcome)
    return 0
