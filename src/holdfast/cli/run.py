"""holdfast run"""

from __future__ import annotations

from typing import Any

import click

from holdfast.cli import options as shared


@click.command(name="run", cls=shared.HeadedCommand)
@shared.add_run_options
@click.option("--chaos", is_flag=True, help="Run the mutations under the faults of the chaos block.")
@click.option("--chaos-only", is_flag=True, help="Run the golden prompts under these faults, without mutations.")
@click.option("--chaos-profile", metavar="NAME", help="Use the faults of a built-in profile instead.")
@shared.add_output_options
def command(chaos_only: bool, **given: Any) -> int:
    """Run the task of the file in its sandbox, or mutations of its golden prompts.

    With a chaos_matrix, every case runs in every scenario, and the resilience matrix is printed too.

    \b
      holdfast run renewals.yaml
      holdfast run renewals.yaml --replicas 5 -o report.html
      holdfast run renewals.yaml -k "mail and not slow" -x
      holdfast run renewals.yaml --trial 7f3a2c91d044 --seed 7
      holdfast run agent.yaml --chaos-only --chaos-profile api_outage
    """
    from holdfast.cli.run_job import run_and_show

    return run_and_show(part="chaos" if chaos_only else "run", **given)
