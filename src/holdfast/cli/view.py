"""holdfast view"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import nullcontext, suppress
from pathlib import Path

import click

from holdfast.cli import options as shared
from holdfast.errors import UsageError
from holdfast.folders import DEFAULT_FILES, get_own_folder_of, get_runs_folder
from holdfast.model.codec import encode
from holdfast.store.rundir import RunDir
from holdfast.web.address import is_run_id
from holdfast.web.opened_page import open_page
from holdfast.web.viewer import Viewer


@click.command(name="view")
@shared.runs_option
@click.argument("run", default="", shell_complete=shared.complete_from("runs"))
@click.option("--port", type=click.IntRange(1, 65535), metavar="N", help="Port. Default: any free port.")
@click.option("--no-open", is_flag=True, help="Print the address and open no browser.")
@click.option("--json", "as_json", is_flag=True, help="Print the address as JSON and open no browser.")
def command(run: str, port: int | None, no_open: bool, as_json: bool) -> int:
    """Browse all runs of this project, including those that are still running.

    The page is served on this machine only, and its address contains a secret. Press Ctrl-C to stop.

    \b
      holdfast view
      holdfast view 0007
      holdfast view latest --no-open
    """
    rundir = RunDir.find(get_runs_folder(), run) if run else None
    runs = _get_runs_folder(rundir) if rundir is not None else get_runs_folder().absolute()
    if rundir is None:
        _refuse_no_project(runs)
    opens = not no_open and not as_json and sys.stdout.isatty()
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(runs, rundir.id if rundir is not None else "", port, opens=opens, as_json=as_json))
    return 0


def _get_runs_folder(run: RunDir) -> Path:
    """Return the folder of runs that contains this run, here or in another project."""
    runs = run.path.parents[2] if "/" in run.id else run.path.parent
    if not is_run_id(run.id):
        problem = f"{run.path} is a run outside a project: its folder must be a number"
        raise UsageError(
            problem, hint=f"rename it: mv {run.path.name} 0001, then holdfast view path/to/0001", code="run-unusable"
        )
    return runs


def _refuse_no_project(runs: Path) -> None:
    """Reject a folder without runs and without a spec: the user probably meant another one."""
    if runs.is_dir() or any(Path(name).is_file() for name in DEFAULT_FILES):
        return
    raise UsageError(
        f"no run is stored here: there is no folder {runs}",
        hint="go to the folder of your project, or create a run: holdfast demo, holdfast contract run",
        code="run-unknown",
    )


async def _serve(runs: Path, run: str, port: int | None, *, opens: bool, as_json: bool) -> None:
    viewer = Viewer(runs, os.environ)
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            loop.add_signal_handler(number, over.set)
    try:
        try:
            await viewer.open(port or 0)
        except OSError as refused:
            problem = f"port {port} of 127.0.0.1 cannot be used: {refused.strerror}"
            raise UsageError(
                problem, hint="choose another with --port, or leave it out to use any free port", code="port-taken"
            ) from None
        url = viewer.url + (f"#/run/{run}" if run else "")
        _print_address(url, viewer.port, as_json)
        with open_page(url, get_own_folder_of(runs)) if opens else nullcontext():
            await over.wait()
    finally:
        await viewer.close()


def _print_address(url: str, port: int, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(encode({"url": url, "port": port, "pid": os.getpid()}).decode() + "\n")
    else:
        print(url)
        print("Keep this address to yourself: it shows every run. Ctrl-C stops the viewer.", file=sys.stderr)
    sys.stdout.flush()
