"""holdfast checks"""

from __future__ import annotations

import click

from holdfast.cli import options as shared


@click.command(name="checks")
@click.argument("name", required=False, shell_complete=shared.complete_from("checks"))
@shared.as_json
def command(name: str | None, as_json: bool) -> None:
    """List every check that a rule can use, with its settings (* required), or describe one.

    \b
      holdfast checks
      holdfast checks side_effect_once
      holdfast checks --json
    """
    from holdfast.cli.catalogue import show

    show("check", name, as_json=as_json)
    if not as_json and name is None:
        print("Every rule also takes severity, when, negate, probes, over, replica_aggregation, weight, gate.")
        print("holdfast checks NAME describes one in full.")
