"""holdfast run"""

from __future__ import annotations

from typing import Any

import click

from holdfast.cli import options as shared


@click.command(name="run")
@shared.run_options
@shared.output_options
def command(**given: Any) -> int:
    """Run what the file declares: the task in its world, judged by the state it leaves.

    With a chaos_matrix every case is run in every scenario, and the resilience matrix is shown too.

    \b
      holdfast run renewals.yaml
      holdfast run renewals.yaml --replicas 5 -o report.html
      holdfast run renewals.yaml -k "mail and not slow" -x
      holdfast run renewals.yaml --trial 7f3a2c91d044 --seed 7
    """
    from holdfast.cli.run_job import run_and_show

    return run_and_show(part="scenario", **given)
