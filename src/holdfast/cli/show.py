"""holdfast show | report | judge"""

from __future__ import annotations

from typing import Any

import click

from holdfast.cli import options as shared


@click.command(name="show")
@shared.runs_option
@click.argument("what", metavar="[RUN|TRIAL]", default="latest", shell_complete=shared.complete_from("runs"))
@click.argument("run", metavar="[RUN]", required=False, shell_complete=shared.complete_from("runs"))
@shared.as_json
@shared.quiet
@click.option("-v", "--verbose", is_flag=True, help="Print every failure and every text in full.")
def show_command(**raw_options: Any) -> int:
    """Show a stored run, or one trial: calls, faults, SQL and files on one timeline, and the rules.

    \b
      holdfast show                     the newest run
      holdfast show 0007 -v
      holdfast show 7f3a2c91            a trial, by the start of its id
      holdfast show 7f3a2c91 0007       the trial in that run
    """
    from holdfast.cli.stored import show

    return show(**raw_options)


@click.command(name="report")
@shared.runs_option
@click.argument("run", shell_complete=shared.complete_from("runs"))
@shared.output_files
@shared.as_json
@shared.verbose
def report_command(**raw_options: Any) -> int:
    """Show a stored run again, or render it in another format.

    \b
      holdfast report 0007
      holdfast report latest -o run.html -o run.xml
    """
    from holdfast.cli.stored import report

    return report(**raw_options)


@click.command(name="judge", cls=shared.HeadedCommand)
@shared.runs_option
@click.argument("run", shell_complete=shared.complete_from("runs"))
@shared.add_config
@shared.add(*shared.VERDICT_OPTIONS)
@shared.output_files
@shared.as_json
@shared.quiet
def judge_command(**raw_options: Any) -> int:
    """Judge a stored run again with changed rules. The agent is not called.

    \b
      holdfast judge 0007                    with the rules of the run
      holdfast judge latest finance.yaml     with the current rules
    """
    from holdfast.cli.stored import judge

    return judge(**raw_options)
