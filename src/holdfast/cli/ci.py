"""holdfast ci"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from holdfast.cli import options as shared
from holdfast.plan import RunOptions


@click.command(name="ci")
@shared.whole_options
@shared.whole_output
def command(
    config: Path | None,
    resume: str | None,
    force: bool,
    outputs: tuple[Path, ...],
    as_json: bool,
    quiet: bool,
    verbose: bool,
    no_report: bool,
    **given: Any,
) -> int:
    """Run every part that the file configures, and answer: may this agent ship?

    The parts are the task, the contract, mutations, chaos and replays. Each trial is run once; the overall score is the
    weighted mean of the parts that ran. A minimum is for that score.

    \b
      holdfast ci
      holdfast ci --min-score 90 -o reports
      holdfast ci --resume 0007
    """
    options = shared.options(part="ci", **given)
    return run_several(
        config, resume, force, options, outputs, as_json=as_json, quiet=quiet, verbose=verbose, report=not no_report
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
) -> int:
    """Runs the parts and shows them; the exit code."""
    from holdfast.cli.run_job import Screen
    from holdfast.cli.whole_run import plan_whole, run_whole, show_overall, write_overall
    from holdfast.report.whole_files import check_output

    for path in outputs:
        check_output(path)
    plan = plan_whole(config, options, resume, force)
    screen = Screen(as_json=as_json, quiet=quiet, verbose=verbose)
    with closing(run_whole(plan, screen, report=report)) as found:
        missing = write_overall(found, outputs, report=report)
        show_overall(found, as_json=as_json, quiet=quiet, page=found.shown_page if report else "")
    for trouble in missing:
        print(f"error: {trouble}", file=sys.stderr)
    return found.overall.exit_code or (3 if missing else 0)
