"""holdfast view"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress

import click

from holdfast.cli import options as shared


@click.command(name="view")
@click.argument("run", default="")
@click.option("--port", type=click.IntRange(1, 65535), metavar="N", help="This port; else any that is free.")
@click.option("--no-open", is_flag=True, help="Open no browser; print the address only.")
@shared.as_json
def command(run: str, port: int | None, no_open: bool, as_json: bool) -> int:
    """Look at all runs of this project in a browser, on this machine alone.

    \b
      holdfast view
      holdfast view 0007 --no-open
    """
    with suppress(KeyboardInterrupt):
        asyncio.run(_view(run, port, as_json))
    return 0


async def _view(run: str, port: int | None, as_json: bool) -> None:
    from holdfast.runner.start import RUNS
    from holdfast.web.viewer import Viewer

    viewer = Viewer(RUNS, os.environ)
    await viewer.open(port or 0)
    try:
        print(viewer.url)
        sys.stdout.flush()
        await asyncio.Event().wait()
    finally:
        await viewer.close()
