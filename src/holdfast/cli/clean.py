"""holdfast clean"""

from __future__ import annotations

import time

import click

from holdfast.cli import options as shared
from holdfast.errors import UsageError
from holdfast.folders import KEPT, get_own_folder
from holdfast.planes.gateway_lock import remove_leftovers
from holdfast.processes.scratch import sweep
from holdfast.reading.durations import parse_duration
from holdfast.report.safe import to_one_line
from holdfast.world import kept_world
from holdfast.world.sandbox import limits
from holdfast.world.supervisors import container_owner


@click.command(name="clean")
@shared.runs_option
@click.option("--kept", is_flag=True, help="Also remove all sandboxes kept by --keep.")
@click.option("--older-than", metavar="TIME", help="Also remove kept sandboxes older than this: 36h, 30m.")
def command(kept: bool, older_than: str | None) -> int:
    """Remove leftovers of killed Holdfast processes. Runs, and anything in use, stay.

    \b
      holdfast clean
      holdfast clean --kept
      holdfast clean --older-than 24h
    """
    removed = [*map(str, sweep()), *map(str, remove_leftovers(get_own_folder()))]
    removed += [f"control group {name}" for name in limits.sweep()]
    removed += [f"container {name}" for name in container_owner.sweep()]
    age_s = 0.0 if kept else _parse_age(older_than)
    if age_s is not None:
        removed += map(str, kept_world.clear_kept_worlds(get_own_folder() / KEPT, age_s, time.time()))
    for name in removed:
        print(f"removed {to_one_line(name)}")
    if not removed:
        print("nothing was left behind")
    return 0


def _parse_age(text: str | None) -> float | None:
    """Parse a duration; raise UsageError if it is not one."""
    if text is None:
        return None
    duration = parse_duration(text)
    if duration is None:
        raise UsageError(
            f"--older-than {text}: not a duration", hint="write it as 90s, 30m or 24h", code="argument-invalid"
        )
    return duration / 1000
