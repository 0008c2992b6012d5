"""holdfast demo"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from holdfast.demo.demo import Version
    from holdfast.runner.outcome import RunOutcome

_SEEN = "You saw one contract, held by a good agent and broken by a careless one; in calm the two look alike."
_NEXT = "Next: holdfast init writes a spec and an agent of your own to start from."


@click.command(name="demo")
def command() -> int:
    """The finance agent, good and careless, through three scenarios. No network, no key.

    \b
      holdfast demo
    """
    from holdfast.demo.demo import VERSIONS, surprise

    surprises = []
    for number, version in enumerate(VERSIONS, start=1):
        outcome = _show(version, number)
        if outcome.score.exit_code == 2:
            return 2
        found = surprise(version, (row.cell for row in outcome.run.cells))
        surprises += [found] if found else []
        outcome.close()
    for line in surprises:
        print(f"error: not what the demo must show: {line}", file=sys.stderr)
    if surprises:
        return 1
    print(f"{_SEEN}\n{_NEXT}{_where()}")
    return 0


def _where() -> str:
    """How to reach the command, where the shell does not find it."""
    from shutil import which

    if which("holdfast") is not None:
        return ""
    return f"\n`holdfast` is {_quoted(Path(os.path.relpath(sys.argv[0])))} here: put its folder on your PATH."


def _show(version: Version, number: int) -> RunOutcome:
    """Runs one version as `contract run` would, and tells about it."""
    from holdfast.cli.run_job import execute, prepare
    from holdfast.cli.screen_output import Screen
    from holdfast.plan import RunOptions
    from holdfast.runner.outcome import shown_path

    spec = Path(shown_path(version.spec))
    print(f"{number}. The {version.name} agent: {version.about}.\n   holdfast contract run -c {_quoted(spec)}\n")
    screen = Screen()
    outcome = execute(prepare(spec, None, False, RunOptions(), ()), screen, (), report=True)
    screen.finish(outcome)
    print()
    return outcome


def _quoted(path: Path) -> str:
    from shlex import quote

    return quote(str(path))
