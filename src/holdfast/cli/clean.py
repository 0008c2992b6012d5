"""holdfast clean"""

from __future__ import annotations

from pathlib import Path

import click


@click.command(name="clean")
def command() -> int:
    """Remove what a killed Holdfast left behind. What is in use stays; so do your runs.

    \b
      holdfast clean
    """
    from holdfast.planes.standing import clear
    from holdfast.processes.scratch import sweep
    from holdfast.report.safe import one_line

    removed = [*sweep(), *clear(Path(".holdfast"))]
    for path in removed:
        print(f"removed {one_line(str(path))}")
    if not removed:
        print("nothing was left behind")
    return 0
