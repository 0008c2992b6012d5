"""holdfast shrink"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from holdfast.cli import options as shared


@click.command(name="shrink", cls=shared.HeadedCommand)
@click.argument("trial")
@shared.config_option
@click.option("--write", "write", type=click.Path(path_type=Path), metavar="FILE", help="Append the cause to FILE.")
@shared.add_hunt_run_options
@shared.as_json
def command(trial: str, config: Path | None, write: Path | None, as_json: bool, **given: Any) -> int:
    """Reduce a failed trial of any run to the faults that make it fail.

    \b
      holdfast shrink 7f3a2c91
      holdfast shrink 7f3a2c91 --write causes.yaml
    """
    from holdfast.cli.hunt_job import shrink_and_show

    return shrink_and_show(trial, config, write=write, as_json=as_json, **given)
