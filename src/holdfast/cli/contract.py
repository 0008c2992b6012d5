"""holdfast contract run | validate | score"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from holdfast.cli import options as shared


@click.group(name="contract")
def command() -> None:
    """Run, validate or score a contract: every rule in every scenario.

    \b
      holdfast contract run
      holdfast contract run -c finance.yaml --replicas 5 -o report.html
      holdfast contract run --trial 7f3a2c91d044 --seed 7
    """


@command.command()
@shared.run_options
@click.option("-o", "--output", "outputs", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
              help="Write a report: .html .json .xml .md")  # fmt: skip
@click.option("--otlp", metavar="FILE|URL", help="Export every call as OpenTelemetry spans.")
@shared.as_json
@click.option("-q", "--quiet", is_flag=True, help="Only the score and the verdict.")
@click.option("-v", "--verbose", is_flag=True, help="Every failure in full.")
@click.option("--dry-run", is_flag=True, help="Count the trials; run nothing.")
@click.option("--no-report", is_flag=True, help="Do not write report.html into the run's folder.")
def run(
    config: Path | None,
    resume: str | None,
    force: bool,
    outputs: tuple[Path, ...],
    otlp: str | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    dry_run: bool,
    no_report: bool,
    **given: Any,
) -> int:
    """Run the contract across the chaos matrix; print the score and why each cell failed.

    \b
      holdfast contract run
      holdfast contract run --scenario 'llm-*' --replicas 5 -o report.html
      holdfast contract run --trial 7f3a2c91d044 --seed 7
      holdfast contract run --resume 0007
    """
    from holdfast.cli.running import Screen, execute, prepare, send_traces
    from holdfast.runner.export import check_target

    if otlp is not None:
        check_target(otlp)
    screen = Screen(as_json=as_json, quiet=quiet, verbose=verbose)
    prepared = prepare(config, resume, force, shared.options(**given), outputs)
    if dry_run:
        return screen.dry_run(prepared.job, prepared.rundir)
    with closing(execute(prepared, screen, outputs, report=not no_report)) as outcome:
        screen.finish(outcome)
        if otlp is not None:
            send_traces(outcome, otlp, screen)
    return outcome.score.exit_code


@command.command()
@shared.config
@shared.as_json
def validate(config: Path | None, as_json: bool) -> int:
    """Check the contract without running anything: no command, no import, no call.

    \b
      holdfast contract validate -c finance.yaml
    """
    from holdfast.cli.validating import check_file

    return check_file(shared.find_config(config), as_json=as_json, contract=True)


@command.command()
@shared.run_options
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever the verdict.")
def score(config: Path | None, resume: str | None, force: bool, exit_zero: bool, **given: Any) -> int:
    """Print the resilience score alone; exit as `contract run` does.

    \b
      test "$(holdfast contract score)" = 100.00
    """
    from holdfast.cli.running import Screen, execute, prepare

    prepared = prepare(config, resume, force, shared.options(**given), ())
    with closing(execute(prepared, Screen(silent=True), (), report=False)) as outcome:
        pass  # the number is all that is shown
    if outcome.score.value is not None:
        print(f"{outcome.score.value:.2f}")
    for reason in outcome.score.reasons if outcome.score.exit_code else ():
        print(reason, file=sys.stderr)
    return 0 if exit_zero else outcome.score.exit_code
