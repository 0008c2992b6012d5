"""holdfast run"""

from __future__ import annotations

from typing import Any

import click

from holdfast.cli import options as shared


@click.command(name="run", cls=shared.HeadedCommand)
@shared.run_options
@click.option("--chaos", is_flag=True, help="Mutations in the weather of the chaos block.")
@click.option("--chaos-only", is_flag=True, help="The golden prompts in that weather, not mutated.")
@click.option("--chaos-profile", metavar="NAME", help="A built-in profile's weather instead of the block's.")
@shared.output_options
def command(chaos_only: bool, **given: Any) -> int:
    """Run what the file declares: its task in its world, or its golden prompts, mutated.

    With a chaos_matrix every case is run in every scenario, and the resilience matrix is shown too.

    \b
      holdfast run renewals.yaml
      holdfast run renewals.yaml --replicas 5 -o report.html
      holdfast run renewals.yaml -k "mail and not slow" -x
      holdfast run renewals.yaml --trial 7f3a2c91d044 --seed 7
      holdfast run agent.yaml --chaos-only --chaos-profile api_outage
    """
    from holdfast.cli.run_job import run_and_show

    return run_and_show(part="chaos" if chaos_only else "run", **given)
