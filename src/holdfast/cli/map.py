"""holdfast map"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from holdfast.cli import options as shared


@click.command(name="map", cls=shared.HeadedCommand)
@shared.add_config
@shared.add_map_options
@shared.as_json
def command(config: Path | None, as_json: bool, quiet: bool, **given: Any) -> int:
    """Show the calls that the agent makes, what feeds what, and which faults were tried there.

    Asks every prompt once in calm. The coverage counts the faults of all stored runs of this file.

    \b
      holdfast map
      holdfast map finance.yaml --json
    """
    from holdfast.cli.hunt_job import map_and_show

    return map_and_show(config, as_json=as_json, quiet=quiet, **given)
