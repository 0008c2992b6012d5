"""holdfast report RUN"""

from __future__ import annotations

from pathlib import Path

import click

from holdfast.cli import options as shared
from holdfast.cli.stored_run import show_stored
from holdfast.folders import get_runs_folder
from holdfast.store.rundir import RunDir


@click.command(name="report")
@shared.runs_option
@click.argument("run", shell_complete=shared.complete_from("runs"))
@shared.output_files
@shared.as_json
@click.option("-v", "--verbose", is_flag=True, help="Print every failure in full.")
def command(run: str, outputs: tuple[Path, ...], as_json: bool, verbose: bool) -> int:
    """Show a stored run again, or render it in another format.

    \b
      holdfast report 0007
      holdfast report latest -o run.html -o run.xml
    """
    return show_stored(RunDir.find(get_runs_folder(), run), outputs, as_json=as_json, verbose=verbose)
