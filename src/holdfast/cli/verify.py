"""holdfast verify"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import click

from holdfast.api.config_file import find_config
from holdfast.cli import options as shared


@click.command(name="verify")
@shared.config
def command(config: Path | None) -> int:
    """Ask the agent the first prompt once, without chaos: is it there, does it answer?

    \b
      holdfast verify finance.yaml
    """
    from holdfast.api.job import load_part
    from holdfast.plan import RunOptions
    from holdfast.report.safe import one_line
    from holdfast.runner.verify import ask_once

    spec, _ = load_part(find_config(config), RunOptions(part="verify"))
    seen, tools = asyncio.run(ask_once(spec, os.environ))
    turn = seen.turns[-1]
    print(f"asked     {one_line(turn.asked)}")
    empty = "the answer is empty" if turn.ending == "answered" else f"{turn.ending} {one_line(turn.detail)}"
    print(f"answered  {one_line(turn.text) if turn.text else f'nothing: {empty}'}")
    if turn.ending != "answered" and turn.text:
        print(f"ended     {turn.ending} {one_line(turn.detail)}")
    print(f"took      {turn.latency_ms:.0f} ms")
    if tools:
        print(f"tools     {', '.join(tools)}")
    return 0 if turn.ending == "answered" else 1
