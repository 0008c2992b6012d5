"""holdfast score"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from holdfast.api.whole_plan import plan_whole
from holdfast.cli import options as shared
from holdfast.cli.screen_output import Screen
from holdfast.cli.whole_run import run_and_show_parts
from holdfast.report.safe import to_one_line


@click.command(name="score", cls=shared.HeadedCommand)
@shared.add_whole_options
@click.option("--exit-zero", is_flag=True, help="Exit 0 regardless of the verdict.")
def command(config: Path | None, resume: str | None, force: bool, exit_zero: bool, **given: Any) -> int:
    """Print only the overall score; the exit codes are those of `ci`.

    \b
      test "$(holdfast score)" = 100.00
    """
    plan = plan_whole(config, shared.build_run_options(part="ci", **given), resume, force, warn=shared.check_options)
    with closing(run_and_show_parts(plan, Screen(silent=True), report=False)) as found:
        pass  # the number is all that is shown
    if found.overall.score is not None:
        print(f"{found.overall.score:.2f}")
    for reason in found.overall.reasons if found.overall.exit_code else ():
        print(to_one_line(reason), file=sys.stderr)
    return 0 if exit_zero else found.overall.exit_code
