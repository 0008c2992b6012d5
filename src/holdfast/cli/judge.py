"""holdfast judge RUN"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from holdfast.cli import options as shared
from holdfast.cli.reports import report_unwritten, write_reports
from holdfast.cli.screen_output import Screen
from holdfast.folders import get_runs_folder
from holdfast.report.formats.files import find_reporter
from holdfast.runner.past.rejudge import judge_again
from holdfast.runner.whole import get_single_part
from holdfast.store.rundir import RunDir


@click.command(name="judge", cls=shared.HeadedCommand)
@shared.runs_option
@click.argument("run", shell_complete=shared.complete_from("runs"))
@shared.add_config
@shared.add(*shared.VERDICT_OPTIONS)
@shared.output_files
@shared.as_json
@shared.quiet
def command(
    run: str, config: Path | None, outputs: tuple[Path, ...], as_json: bool, quiet: bool, **raw_options: Any
) -> int:
    """Judge a stored run again with changed rules. The agent is not called.

    \b
      holdfast judge 0007                    with the rules of the run
      holdfast judge latest finance.yaml     with the current rules
    """
    for path in outputs:
        find_reporter(path)
    rundir = get_single_part(RunDir.find(get_runs_folder(), run))
    with closing(
        judge_again(rundir, config=config, options=shared.build_run_options(**raw_options), environ=os.environ)
    ) as outcome:
        reported = write_reports(outcome, outputs)
        Screen(as_json=as_json, quiet=quiet).finish(reported)
    return report_unwritten(reported)
