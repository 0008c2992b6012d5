"""holdfast compare A B"""

from __future__ import annotations

import os
import sys

import click

from holdfast.cli import options as shared
from holdfast.cli import screen
from holdfast.cli.screen import print_document
from holdfast.folders import get_runs_folder
from holdfast.report.safe import can_show_signs, to_ascii
from holdfast.report.terminal.comparison import build_document, format_comparison
from holdfast.report.terminal.paint import get_painter
from holdfast.runner.past.comparison import compare_runs
from holdfast.store.rundir import RunDir


@click.command(name="compare")
@shared.runs_option
@click.argument("before", shell_complete=shared.complete_from("runs"))
@click.argument("after", shell_complete=shared.complete_from("runs"))
@shared.as_json
@click.option("--exit-code", "exits", is_flag=True, help="Exit 1 if a rule got worse.")
def command(before: str, after: str, as_json: bool, exits: bool) -> int:
    """Compare two stored runs rule by rule, on the trials that both have.

    A rule is worse or better only if the difference is significant at 5 %, corrected for the number of rules.

    \b
      holdfast compare 0003 0007
      holdfast compare 0003 latest --exit-code
    """
    comparison = compare_runs(
        RunDir.find(get_runs_folder(), before), RunDir.find(get_runs_folder(), after), environ=os.environ
    )
    if as_json:
        print_document(build_document(comparison))
    else:
        text = "\n".join(format_comparison(comparison, get_painter(screen.should_use_color(sys.stdout)))) + "\n"
        sys.stdout.write(text if can_show_signs(sys.stdout.encoding) else to_ascii(text))
    return int(exits and bool(comparison.select_rules("worse")))
