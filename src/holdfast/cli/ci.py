"""holdfast ci"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from holdfast.cli import options as shared
from holdfast.errors import UsageError
from holdfast.plan import RunOptions


@click.command(name="ci", cls=shared.HeadedCommand)
@shared.add_whole_options
@click.option(
    "--baseline",
    metavar="RUN|last",
    help="Fail if a rule got worse since this run.",
    shell_complete=shared.complete_from("runs"),
)
@shared.add_whole_output
def command(
    config: Path | None,
    resume: str | None,
    force: bool,
    outputs: tuple[Path, ...],
    as_json: bool,
    quiet: bool,
    verbose: bool,
    no_report: bool,
    annotations: bool,
    baseline: str | None,
    cached: bool,
    **given: Any,
) -> int:
    """Run every part of the file and decide whether the agent may ship.

    The parts are the task, the contract, mutations, chaos and replays. Each trial runs once; the overall score is the
    weighted mean of the parts that ran. --min-score applies to it.

    \b
      holdfast ci
      holdfast ci --min-score 90 -o reports
      holdfast ci --baseline last
      holdfast ci --resume 0007
    """
    options = shared.build_run_options(part="ci", **given)
    return run_several(
        config,
        resume,
        force,
        options,
        outputs,
        as_json=as_json,
        quiet=quiet,
        verbose=verbose,
        report=not no_report,
        baseline=baseline,
        cached=cached,
        annotations=annotations,
    )


def run_several(
    config: Path | None,
    resume: str | None,
    force: bool,
    options: RunOptions,
    outputs: Sequence[Path],
    *,
    as_json: bool = False,
    quiet: bool = False,
    verbose: bool = False,
    report: bool = True,
    baseline: str | None = None,
    cached: bool = False,
    annotations: bool = False,
) -> int:
    """Run and show the parts, and return the exit code."""
    from holdfast.api.whole_plan import plan_whole
    from holdfast.cli.screen_output import Screen
    from holdfast.cli.whole_run import report_whole_step, run_and_show_parts, show_overall, write_overall
    from holdfast.report.formats.whole_files import check_output

    for path in outputs:
        check_output(path)
    if cached and resume is not None:
        raise UsageError(
            "--cached and --resume cannot be combined",
            hint="--resume runs the trials that are left",
            code="options-conflict",
        )
    plan = plan_whole(config, options, resume, force, warn=shared.check_options, baseline=baseline)
    screen = Screen(as_json=as_json, quiet=quiet, verbose=verbose)
    with closing(run_and_show_parts(plan, screen, report=report, cached=cached, outputs=outputs)) as found:
        missing = write_overall(found, outputs, report=report)
        report_whole_step(found, annotations=annotations)
        page = found.page_path if report else ""
        show_overall(found, as_json=as_json, quiet=quiet, verbose=verbose, page=page)
    for trouble in missing:
        print(f"error: {trouble}", file=sys.stderr)
    return found.overall.exit_code or (3 if missing else 0)
