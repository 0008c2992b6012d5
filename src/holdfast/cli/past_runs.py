"""holdfast runs | trend | compare: what earlier runs say, without showing one in full."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import click
from msgspec.structs import asdict, replace

from holdfast.cli import options as shared
from holdfast.cli import screen
from holdfast.cli.screen import print_document
from holdfast.errors import UsageError
from holdfast.folders import DEFAULT_FILES, get_runs_folder, shorten_path
from holdfast.report.safe import get_painter
from holdfast.report.terminal.comparison import build_document, format_comparison
from holdfast.report.terminal.past_runs import Trend, build_trends, format_table, format_trend
from holdfast.runner.past.comparison import compare_runs
from holdfast.runner.past.history import open_history
from holdfast.store.past_run import PastRun
from holdfast.store.run_folders import get_run_folder, is_written, list_stored_runs
from holdfast.store.rundir import RunDir


@click.command(name="runs")
@shared.runs_option
@click.option("-n", "count", type=click.IntRange(1), default=20, metavar="N", help="Number of runs.", show_default=True)
@shared.as_json
def runs_command(count: int, as_json: bool) -> int:
    """List the stored runs, the newest first.

    \b
      holdfast runs
      holdfast runs -n 5 --json
    """
    runs = open_history(get_runs_folder()).read_runs()
    ids = list(dict.fromkeys(run.id.partition("/")[0] for run in runs))[:count]
    listed = [_update_state(run) for run in runs if run.id.partition("/")[0] in ids]
    if as_json:
        rows = [{name: value for name, value in asdict(run).items() if name != "cells"} for run in listed]
        print_document({"runs": rows})
        return 0
    if not runs:
        print(f"no run is stored in {get_runs_folder()}")
        return 0
    # newest first, each run before its parts
    ordered = sorted(listed, key=lambda run: (-run.order[0], run.order[1]))
    paint = get_painter(screen.should_use_color(sys.stdout))
    print(*format_table(ordered, screen.get_width(sys.stdout), paint), sep="\n")
    more = len({run.id.partition("/")[0] for run in runs}) - len(ids)
    if more:
        print(f"{more} more: holdfast runs -n {more + len(ids)}")
    return 0


def _update_state(run: PastRun) -> PastRun:
    """Set the state of a run that has not ended: running or killed. The history does not store that."""
    if not run.is_unended:
        return run
    return replace(run, state="running" if is_written(get_run_folder(get_runs_folder(), run.id)) else "killed")


@click.command(name="trend")
@shared.runs_option
@click.option("--spec", type=shared.FILE, metavar="FILE", help="Spec file. Default: the one with the newest run.")
@click.option("--rule", metavar="ID", help="Show this rule in every scenario, even if nothing changed.")
@click.option("-n", "count", type=click.IntRange(1), default=30, metavar="N", help="Number of runs.", show_default=True)
@shared.as_json
def trend_command(spec: Path | None, rule: str | None, count: int, as_json: bool) -> int:
    """Show the scores of one file's runs over time, and the rules that went from pass to fail or back.

    \b
      holdfast trend
      holdfast trend --spec finance.yaml --rule always-cite-source
    """
    # Merged runs lie here, not next to their spec.
    folders = list(dict.fromkeys((get_runs_folder(spec), get_runs_folder())))
    folders = list(filter(list_stored_runs, folders))[:1] or folders
    history = open_history(folders[0])
    runs = history.read_runs()
    path = _choose_spec(spec, runs, " or ".join(map(str, folders)))
    of_file = [run for run in runs if run.spec == path]
    trends = build_trends(history.read_runs(cells_of=[run.id for run in of_file]), path, count)
    for run in of_file:
        if run.note:
            shared.warn(run.note)
    _check_rule(rule, trends)
    if as_json:
        _show_json(trends, rule)
    else:
        _show(trends, rule)
    return 0


def _choose_spec(spec: Path | None, runs: Sequence[PastRun], looked: str) -> str:
    """Choose the named file, else the default one if it was run, else the file of the newest run."""
    specs = list(dict.fromkeys(run.spec for run in runs if run.spec))
    if not specs:
        raise UsageError(f"no run is stored in {looked}", hint="create one: holdfast contract run", code="run-unknown")
    if spec is None:
        here = (str(Path(name).resolve()) for name in DEFAULT_FILES)
        return next((path for path in here if path in specs), specs[0])
    if str(spec.resolve()) not in specs:
        raise UsageError(
            f"no run of {spec} is stored in {looked}",
            hint=f"there are runs of: {', '.join(specs[:8])}",
            code="run-unknown",
        )
    return str(spec.resolve())


def _check_rule(rule: str | None, trends: Sequence[Trend]) -> None:
    rules = list(dict.fromkeys(one.rule for trend in trends for one in trend.rules))
    if rule is not None and rule not in rules:
        near = get_close_matches(rule, rules, 1)
        hint = f"did you mean {near[0]}?" if near else f"available: {', '.join(rules[:20]) or 'none'}"
        raise UsageError(f"--rule {rule}: no complete run of this file has this rule", hint=hint, code="name-unknown")


def _show(trends: Sequence[Trend], rule: str | None) -> None:
    paint = get_painter(screen.should_use_color(sys.stdout))
    for trend in trends:
        print(*format_trend(replace(trend, spec=shorten_path(trend.spec)), paint, rule), "", sep="\n")


_TREND_KEYS = ("id", "started", "commit", "dirty", "score", "passed")
"""What `trend --json` has of each run."""


def _show_json(trends: Sequence[Trend], rule: str | None) -> None:
    parts = [
        {
            "part": trend.part,
            "left_out": trend.left_out,
            "runs": [{name: getattr(run, name) for name in _TREND_KEYS} for run in trend.runs],
            "rules": [one for one in trend.rules if rule in (None, one.rule)],
        }
        for trend in trends
    ]
    print_document({"spec": trends[0].spec, "parts": parts})


@click.command(name="compare")
@shared.runs_option
@click.argument("before", shell_complete=shared.complete_from("runs"))
@click.argument("after", shell_complete=shared.complete_from("runs"))
@shared.as_json
@click.option("--exit-code", "exits", is_flag=True, help="Exit 1 if a rule got worse.")
def compare_command(before: str, after: str, as_json: bool, exits: bool) -> int:
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
        print(*format_comparison(comparison, get_painter(screen.should_use_color(sys.stdout))), sep="\n")
    return int(exits and bool(comparison.select_rules("worse")))
