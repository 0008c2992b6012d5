"""holdfast checks"""

from __future__ import annotations

import click

from holdfast.cli import options as shared


@click.command(name="checks")
@shared.as_json
def command(as_json: bool) -> None:
    """List every check a rule can use, with its settings (* required).

    \b
      holdfast checks
      holdfast checks --json
    """
    from holdfast.cli.catalogue import show

    show([("checks", "type: on what the agent said and how it ended")], as_json=as_json)
    if not as_json:
        print("Every rule also takes severity, when, negate, probes, over, replica_aggregation, weight, gate.")
