"""holdfast import"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from holdfast.cli.replay_sessions import FOLDER, FORMATS, write_and_report
from holdfast.errors import UsageError, UserError
from holdfast.imports.task_files import TaskFiles, convert_task, find_tasks, write_tasks
from holdfast.replay.formats import import_files
from holdfast.report.safe import to_one_line


@click.command(name="import")
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR|FILE...")
@click.option("-o", "--output", "folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Output folder. Default: the current folder for tasks, replays for logs.")  # fmt: skip
@click.option("--format", type=click.Choice(FORMATS), help="Format of the files. Default: detected.")
@click.option("--agent", metavar="COMMAND", help="For tasks: the command that starts the agent.")
@click.option("--solution", is_flag=True, help="For tasks: run the reference solution as the agent.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def command(
    sources: tuple[Path, ...], folder: Path | None, format: Any, agent: str | None, solution: bool, force: bool
) -> int:
    """Convert Harbor and terminal-bench tasks to specs, and Inspect logs and other traces.

    \b
      holdfast import tasks/hello-world --agent 'my-agent -p -' -o imported
      holdfast import terminal-bench/tasks -o imported
      holdfast import logs/2026-11-17_shop.eval -o replays
    """
    if agent is not None and solution:
        raise UsageError(
            "--agent and --solution cannot be combined", hint="leave one of them out", code="options-conflict"
        )
    absent = next((source for source in sources if not source.exists()), None)
    if absent is not None:
        raise UsageError(f"there is no {absent}", code="file-missing")
    tasks = [source for source in sources if source.is_dir()]
    files = [source for source in sources if not source.is_dir()]
    if files and (agent is not None or solution):
        hint = "leave them out, or import it separately"
        raise UsageError(
            f"{files[0]} is not a task folder; --agent and --solution apply only to tasks",
            hint=hint,
            code="option-inapplicable",
        )
    if format is not None and not files:
        raise UsageError(
            "--format applies to files, but these are task folders", hint="leave it out", code="option-inapplicable"
        )
    sessions = import_files(files, format) if files else None  # everything is read before anything is written
    _import_tasks(tasks, folder or Path(), agent=agent, solution=solution, force=force)
    if sessions is not None:
        write_and_report(sessions, folder or FOLDER, force=force)
    return 0


def _import_tasks(sources: list[Path], folder: Path, *, agent: str | None, solution: bool, force: bool) -> None:
    """Convert all tasks, reading each before writing one; those of a folder that cannot be imported are named."""
    if not sources:
        return
    cases: list[TaskFiles] = []
    left_out: list[UserError] = []
    for source in sources:
        for task in find_tasks(source):
            try:
                cases.append(convert_task(task, agent=agent, solution=solution))
            except UserError as wrong:
                if task == source:
                    raise
                left_out.append(wrong)
    if left_out and not cases:
        raise left_out[0]
    for refused in left_out:
        print(f"left out: {to_one_line(str(refused))}  [{refused.code}]", file=sys.stderr)
    for one, target in zip(cases, write_tasks(cases, folder, force=force), strict=True):
        print(f"wrote {target}")
        for line in one.left_out:
            print(f"{one.name}: not carried over: {to_one_line(line)}", file=sys.stderr)
    if agent is None and not solution:
        print("Next: put your agent into agent.command, or import with --agent COMMAND")
