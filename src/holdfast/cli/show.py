"""holdfast show"""

from __future__ import annotations

import click

from holdfast.cli import options as shared


@click.command(name="show")
@click.argument("run", default="latest", shell_complete=shared.suggest("runs"))
@shared.as_json
@click.option("-q", "--quiet", is_flag=True, help="Only the score and the verdict.")
@click.option("-v", "--verbose", is_flag=True, help="Every failure in full.")
def command(run: str, as_json: bool, quiet: bool, verbose: bool) -> int:
    """Show the summary of a stored run, of the newest where none is named.

    \b
      holdfast show
      holdfast show 0007 -v
    """
    from holdfast.cli.stored_run import show_stored
    from holdfast.runner.start import RUNS
    from holdfast.store.rundir import RunDir

    return show_stored(RunDir.find(RUNS, run), (), as_json=as_json, quiet=quiet, verbose=verbose)
