"""holdfast trend"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import click
from msgspec.structs import replace

from holdfast.api.config_file import DEFAULT_FILES
from holdfast.cli import options as shared
from holdfast.cli import screen
from holdfast.cli.screen import print_document
from holdfast.errors import UsageError
from holdfast.folders import get_runs_folder
from holdfast.report.terminal.paint import get_painter
from holdfast.report.terminal.run_table import shorten_path
from holdfast.report.terminal.trend import Trend, build_trends, format_trend
from holdfast.runner.past.history import open_history
from holdfast.store.past_run import PastRun
from holdfast.store.run_names import list_stored_runs


@click.command(name="trend")
@shared.runs_option
@click.option(
    "--spec", type=click.Path(path_type=Path), metavar="FILE", help="Spec file. Default: the one with the newest run."
)
@click.option("--rule", metavar="ID", help="Show this rule in every scenario, even if nothing changed.")
@click.option("-n", "count", type=click.IntRange(1), default=30, metavar="N", help="Number of runs.", show_default=True)
@shared.as_json
def command(spec: Path | None, rule: str | None, count: int, as_json: bool) -> int:
    """Show the scores of one file's runs over time, and the rules that went from pass to fail or back.

    \b
      holdfast trend
      holdfast trend --spec finance.yaml --rule always-cite-source
    """
    looked = list(
        dict.fromkeys((get_runs_folder(spec), get_runs_folder()))
    )  # merged runs lie here, not next to their spec
    looked = list(filter(list_stored_runs, looked))[:1] or looked
    with open_history(looked[0], shared.warn) as found:
        path = _choose_spec(spec, found.read_runs(), " or ".join(map(str, looked)))
        of_file = [run for run in found.read_runs() if run.spec == path]
        made = build_trends(found.read_runs(cells_of=[run.id for run in of_file]), path, count)
    for run in of_file:
        if run.note:
            shared.warn(run.note)
    _check_rule(rule, made)
    if as_json:
        _show_json(made, rule)
    else:
        _show(made, rule)
    return 0


def _choose_spec(spec: Path | None, runs: Sequence[PastRun], looked: str) -> str:
    """Choose the named file, else the default one if it was run, else the file of the newest run."""
    known = list(dict.fromkeys(run.spec for run in runs if run.spec))
    if not known:
        raise UsageError(f"no run is stored in {looked}", hint="create one: holdfast contract run", code="run-unknown")
    if spec is None:
        here = (str(Path(name).resolve()) for name in DEFAULT_FILES)
        return next((path for path in here if path in known), known[0])
    if str(spec.resolve()) not in known:
        raise UsageError(
            f"no run of {spec} is stored in {looked}",
            hint=f"there are runs of: {', '.join(known[:8])}",
            code="run-unknown",
        )
    return str(spec.resolve())


def _check_rule(rule: str | None, made: Sequence[Trend]) -> None:
    known = list(dict.fromkeys(one.rule for trend in made for one in trend.rules))
    if rule is not None and rule not in known:
        near = get_close_matches(rule, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known[:20]) or 'none'}"
        raise UsageError(f"--rule {rule}: no complete run of this file has this rule", hint=hint, code="name-unknown")


def _show(made: Sequence[Trend], rule: str | None) -> None:
    paint = get_painter(screen.should_use_color(sys.stdout))
    for trend in made:
        shared.show_lines([*format_trend(replace(trend, spec=shorten_path(trend.spec)), paint, rule), ""])


def _show_json(made: Sequence[Trend], rule: str | None) -> None:
    parts = [
        {
            "part": trend.part,
            "left_out": trend.left_out,
            "runs": [
                {
                    "id": run.id,
                    "started": run.started,
                    "commit": run.commit,
                    "dirty": run.dirty,
                    "score": run.score,
                    "passed": run.passed,
                }
                for run in trend.runs
            ],
            "rules": [one for one in trend.rules if rule in (None, one.rule)],
        }
        for trend in made
    ]
    print_document({"spec": made[0].spec, "parts": parts})
