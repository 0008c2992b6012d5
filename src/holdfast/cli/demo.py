"""holdfast demo"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from shlex import quote
from shutil import which

import click

from holdfast.api.whole_plan import plan_whole
from holdfast.cli import options as shared
from holdfast.cli.ci import run_and_show_parts, write_overall
from holdfast.cli.run_job import execute_and_report, prepare
from holdfast.cli.screen_output import Screen
from holdfast.demo.demo import (
    CARELESS,
    GOOD,
    SCORED,
    VERSIONS,
    Version,
    find_mail_surprise,
    find_overall_surprise,
    find_surprise,
)
from holdfast.folders import get_runs_folder, shorten_path
from holdfast.model.run import Overall
from holdfast.model.score import Cell
from holdfast.plan import RunOptions
from holdfast.report.wording import format_number, format_verdict

_SUMMARY = "You saw one contract that a good agent kept and a careless one broke; without faults the two look alike."
_NEXT = "Next: holdfast init writes a spec and an agent of your own to start from."


class _UserQuit(Exception):
    """The user stopped the demo."""


@click.command(name="demo")
@shared.runs_option
def command() -> int:
    """Run a good and a careless finance agent: a contract, a duplicate mail and the overall score. No network, no key.

    \b
      holdfast demo
    """
    try:
        surprises = [line for line in _run_acts() if line]
    except _UserQuit:
        return 2
    for line in surprises:
        print(f"error: unexpected result of the demo: {line}", file=sys.stderr)
    if surprises:
        return 1
    print(f"{_SUMMARY}\n{_NEXT}")
    if which("holdfast") is None:
        print(f"`holdfast` is {quote(os.path.relpath(sys.argv[0]))} here: put its folder on your PATH.")
    return 0


def _run_acts() -> Iterable[str]:
    """Run each act of the demo, and yield what went differently than expected, or an empty string."""
    for number, version in enumerate(VERSIONS, start=1):
        spec = Path(shorten_path(version.spec))
        print(f"{number}. The {version.name} agent: {version.about}.\n   holdfast contract run -c {quote(str(spec))}\n")
        yield _show(version, spec, RunOptions(), Screen(), find_surprise)
    print(
        "3. What it leaves behind: a mail service accepts a mail, and its reply is lost. Exactly one mail may be sent."
    )
    boxed = RunOptions(part="scenario", backend="process")
    for version, screen in ((GOOD, Screen(quiet=True)), (CARELESS, Screen())):
        spec = Path(shorten_path(version.mail_spec))
        print(f"   The {version.name} agent: {version.mailing}.")
        print(f"   holdfast run -c {quote(str(spec))} --backend process\n")
        yield _show(version, spec, boxed, screen, find_mail_surprise)
    yield from _run_scores()


def _show(
    version: Version,
    spec: Path,
    options: RunOptions,
    screen: Screen,
    surprise: Callable[[Version, Iterable[Cell]], str],
) -> str:
    """Run and show one spec as its command would, and return what differs from the expected result."""
    outcome = execute_and_report(prepare(spec, options), screen)
    screen.finish(outcome)
    print()
    if outcome.score.exit_code == 2:
        raise _UserQuit
    return surprise(version, [row.cell for row in outcome.run.cells])


def _run_scores() -> Iterable[str]:
    """Run every part of both files and print the overall scores side by side."""
    print("4. May it ship? The contract, mutated prompts, chaos, and a recorded incident, as one score.")
    for version in VERSIONS:
        print(f"   holdfast ci -c {quote(shorten_path(version.spec))}")
    print(flush=True)
    results = {version: _run_ci(version) for version in VERSIONS}
    _print_table([(version.name, overall) for version, overall in results.items()])
    yield from (find_overall_surprise(version, overall) for version, overall in results.items())


def _run_ci(version: Version) -> Overall:
    """Run all parts of one file as `ci` does, without output."""
    plan = plan_whole(Path(shorten_path(version.spec)), RunOptions(part="ci"), None, False)
    combined = run_and_show_parts(plan, Screen(silent=True), report=True)
    write_overall(combined, (), report=True)
    if combined.overall.exit_code == 2:
        raise _UserQuit
    return combined.overall


def _print_table(results: list[tuple[str, Overall]]) -> None:
    """Print one line per agent: its parts, the overall score, the verdict and the page."""
    lines = [" " * 12 + "".join(part.rjust(10) for part in (*SCORED, "overall"))]
    for name, one in results:
        scores = {part.part: part.score for part in one.parts}
        numbers = "".join(
            format_number(value).rjust(10) for value in (*(scores.get(part) for part in SCORED), one.score)
        )
        lines.append(
            f"  {name:<10}{numbers}   {format_verdict(one)}   ·   {get_runs_folder() / one.run / 'report.html'}"
        )
    print("\n".join(lines), end="\n\n")
