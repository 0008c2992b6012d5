"""holdfast hunt"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from holdfast.cli import options as shared


@click.command(name="hunt", cls=shared.HeadedCommand)
@shared.add_config
@click.option("--rule", "invariants", multiple=True, metavar="ID", help="Hunt only for faults that break this rule.")
@click.option(
    "--order", type=click.IntRange(1, 3), default=2, metavar="N", help="1: single faults; 2: and pairs; 3: and triples."
)
@click.option("--sweep", default="", metavar="MODES", help="Try only these modes, at every write: killed,lost_reply.")
@click.option("--cause", default="", metavar="ID", help="Try only this cause of an earlier hunt.")
@click.option("--confirm-live", type=click.IntRange(0), default=0, metavar="N", help="Repeat each cause N times live.")
@click.option("--write", "write", type=click.Path(path_type=Path), metavar="FILE", help="Append the causes to FILE.")
@shared.add_shard
@shared.add_hunt_run_options
@shared.as_json
def command(config: Path | None, write: Path | None, as_json: bool, **given: Any) -> int:
    """Find the smallest sets of faults that break a rule, and say what was never tried.

    Asks every prompt in calm, then invents scenarios for the calls that it saw. Each cause is confirmed, as small as
    it gets, and printed as YAML to paste. Causes of earlier hunts are tried first.

    \b
      holdfast hunt
      holdfast hunt finance.yaml --rule no-double-charge --max-trials 100
      holdfast hunt --sweep lost_reply --write causes.yaml
      holdfast hunt --resume 0007
    """
    from holdfast.cli.hunt_job import hunt_and_show

    return hunt_and_show(config, write=write, as_json=as_json, **given)
