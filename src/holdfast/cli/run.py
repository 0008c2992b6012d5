"""holdfast run | ci | score, and holdfast contract run | validate | score"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from holdfast.cli import options as shared
from holdfast.folders import find_config


@click.command(name="run", cls=shared.HeadedCommand)
@shared.add(shared.add_config, *shared.RUN_OPTIONS)
@click.option("--chaos", is_flag=True, help="Run the mutations under the faults of the chaos block.")
@click.option("--chaos-only", is_flag=True, help="Run the golden prompts under these faults, without mutations.")
@click.option("--chaos-profile", metavar="NAME", help="Use the faults of a built-in profile instead.")
@shared.add(*shared.OUTPUT_OPTIONS)
def run_command(chaos_only: bool, **raw_options: Any) -> int:
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

    return run_and_show(part="chaos" if chaos_only else "run", **raw_options)


@click.group(name="contract", cls=shared.CommandGroup)
def contract_command() -> None:
    """Run, validate or score a contract: every rule in every scenario.

    \b
      holdfast contract run
      holdfast contract run finance.yaml --replicas 5 -o report.html
      holdfast contract run --trial 7f3a2c91d044 --seed 7
    """


@contract_command.command(cls=shared.HeadedCommand)
@shared.add(shared.add_config, *shared.RUN_OPTIONS, *shared.OUTPUT_OPTIONS)
def run(**raw_options: Any) -> int:
    """Run the contract across the chaos matrix; print the score and why each cell failed.

    \b
      holdfast contract run
      holdfast contract run --scenario 'llm-*' --replicas 5 -o report.html
      holdfast contract run finance.yaml -k 'cites and not slow' -x -j 4
      holdfast contract run --lf
      holdfast contract run --trial 7f3a2c91d044 --seed 7
      holdfast contract run --resume 0007
    """
    from holdfast.cli.run_job import run_and_show

    return run_and_show(part="contract", **raw_options)


@contract_command.command()
@shared.add_config
@shared.as_json
def validate(config: Path | None, as_json: bool) -> int:
    """Check the contract without running anything: no command, no import, no call.

    \b
      holdfast contract validate finance.yaml
    """
    from holdfast.cli.validate import check_file

    return check_file(find_config(config), as_json=as_json, contract=True)


@contract_command.command(cls=shared.HeadedCommand)
@shared.add(shared.add_config, *shared.RUN_OPTIONS)
@click.option("--exit-zero", is_flag=True, help="Exit 0 regardless of the verdict.")
def score(**raw_options: Any) -> int:
    """Print the resilience score alone; exit as `contract run` does.

    \b
      test "$(holdfast contract score)" = 100.00
    """
    from holdfast.cli.run_job import score_contract

    return score_contract(**raw_options)


@click.command(name="ci", cls=shared.HeadedCommand)
@shared.add(shared.add_config, *shared.WHOLE_OPTIONS)
@click.option(
    "--baseline",
    metavar="RUN|last",
    help="Fail if a rule got worse since this run.",
    shell_complete=shared.complete_from("runs"),
)
@shared.add(*shared.WHOLE_OUTPUT)
def ci_command(**raw_options: Any) -> int:
    """Run every part of the file and decide whether the agent may ship.

    The parts are the task, the contract, mutations, chaos and replays. Each trial runs once; the overall score is the
    weighted mean of the parts that ran. --min-score applies to it.

    \b
      holdfast ci
      holdfast ci --min-score 90 -o reports
      holdfast ci --baseline last
      holdfast ci --resume 0007
    """
    from holdfast.cli.ci import run_ci

    return run_ci(**raw_options)


@click.command(name="score", cls=shared.HeadedCommand)
@shared.add(shared.add_config, *shared.WHOLE_OPTIONS)
@click.option("--exit-zero", is_flag=True, help="Exit 0 regardless of the verdict.")
def score_command(**raw_options: Any) -> int:
    """Print only the overall score; the exit codes are those of `ci`.

    \b
      test "$(holdfast score)" = 100.00
    """
    from holdfast.cli.ci import score_overall

    return score_overall(**raw_options)
