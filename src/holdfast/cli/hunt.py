"""holdfast hunt | shrink | map"""

from __future__ import annotations

from typing import Any

import click

from holdfast.cli import options as shared


@click.command(name="hunt", cls=shared.HeadedCommand)
@shared.add_config
@click.option("--rule", "invariants", multiple=True, metavar="ID", help="Hunt only for faults that break this rule.")
@click.option(
    "--order",
    type=click.IntRange(1, 3),
    default=2,
    metavar="N",
    help="1: single faults; 2: also pairs; 3: also triples.",
)
@click.option("--sweep", default="", metavar="MODES", help="Try only these modes, at every write.")
@click.option("--cause", default="", metavar="ID", help="Try only this cause of an earlier hunt.")
@click.option("--confirm-live", type=click.IntRange(0), default=0, metavar="N", help="Repeat each cause N times live.")
@click.option("--write", "write", type=shared.FILE, metavar="FILE", help="Append the causes to FILE.")
@shared.add(shared.shard, *shared.HUNT_OPTIONS, shared.as_json)
def hunt_command(**raw_options: Any) -> int:
    """Find the smallest sets of faults that break a rule, and say what was never tried.

    Sends every prompt once without faults, then invents scenarios for the calls that it saw. Each cause is confirmed,
    reduced, and printed as YAML to paste. Causes of earlier hunts are tried first.

    \b
      holdfast hunt
      holdfast hunt finance.yaml --rule no-double-charge --max-trials 100
      holdfast hunt --sweep killed,lost_reply --write causes.yaml
      holdfast hunt --resume 0007
    """
    from holdfast.cli.hunt_job import hunt

    return hunt(**raw_options)


@click.command(name="shrink", cls=shared.HeadedCommand)
@click.argument("trial")
@shared.config_option
@click.option("--write", "write", type=shared.FILE, metavar="FILE", help="Append the cause to FILE.")
@shared.add(*shared.HUNT_OPTIONS, shared.as_json)
def shrink_command(**raw_options: Any) -> int:
    """Reduce a failed trial of any run to the faults that make it fail.

    \b
      holdfast shrink 7f3a2c91
      holdfast shrink 7f3a2c91 --write causes.yaml
    """
    from holdfast.cli.hunt_job import shrink

    return shrink(**raw_options)


@click.command(name="map", cls=shared.HeadedCommand)
@shared.add(shared.add_config, *shared.MAP_OPTIONS, shared.as_json)
def map_command(**raw_options: Any) -> int:
    """Show the calls that the agent makes, what feeds what, and which faults were tried there.

    Asks every prompt once in calm. The coverage counts the faults of all stored runs of this file.

    \b
      holdfast map
      holdfast map finance.yaml --json
    """
    from holdfast.cli.hunt_job import show_map

    return show_map(**raw_options)
