"""Detects task folders, and writes their spec folders completely or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from holdfast.errors import UserError
from holdfast.imports import harbor_task as harbor
from holdfast.imports import terminal_bench_task as terminal_bench
from holdfast.imports.foreign_task import InvalidTask
from holdfast.imports.task_environment import build_environment
from holdfast.imports.task_files import SPEC, TaskFiles, build_task_files
from holdfast.spec import check


class ImportRefused(UserError):
    """The spec folders cannot be written; nothing was."""

    default_code = "import-refused"


_READERS = {harbor.MARK: harbor.read_harbor_task, terminal_bench.MARK: terminal_bench.read_terminal_bench_task}


def is_task_folder(path: Path) -> bool:
    """Return whether the folder has the description file of a task."""
    return any((path / mark).is_file() for mark in _READERS)


def find_tasks(path: Path) -> Iterator[Path]:
    """Yield the folder if it is a task, otherwise the tasks directly below it; raises UserError if there is none."""
    if is_task_folder(path):
        yield path
        return
    tasks = [folder for folder in sorted(path.iterdir()) if folder.is_dir() and is_task_folder(folder)]
    if not tasks:
        hint = "a Harbor task has a task.toml, a terminal-bench task a task.yaml"
        raise InvalidTask(f"{path}: neither a Harbor or terminal-bench task nor a folder of such tasks", hint=hint)
    yield from tasks


def convert_task(folder: Path, *, agent: str | None, solution: bool) -> TaskFiles:
    """Return the converted task; UserError says what is wrong with it."""
    task = next(read(folder) for mark, read in _READERS.items() if (folder / mark).is_file())
    if not task.id:
        raise InvalidTask(f"{folder}: {task.name!r} has no letters or digits for an id", hint="rename the task")
    if solution and not task.solution:
        raise InvalidTask(f"{folder}: the solution is not a script", hint="leave out --solution")
    return build_task_files(task, build_environment(task), agent=agent, solution=solution)


def write_tasks(made: Sequence[TaskFiles], below: Path, *, force: bool) -> list[Path]:
    """Write a folder for each task: all of them or none. A result that is not a valid spec is not written."""
    targets = [below / one.name for one in made]
    twice = next((one for one in targets if targets.count(one) > 1), None)
    if twice is not None:
        raise ImportRefused(f"two tasks are called {twice.name}; nothing was written", hint="import them one by one")
    there = next((one for one in targets if one.exists() or one.is_symlink()), None)
    if there is not None and not force:
        hint = "overwrite it with --force, or choose another folder with -o"
        raise ImportRefused(f"{there} already exists; nothing was written", hint=hint)
    foreign = next((one for one in targets if one.exists() and not (one / SPEC).is_file()), None)
    if foreign is not None:
        hint = "choose another folder with -o, or remove it yourself"
        raise ImportRefused(
            f"{foreign} is not an imported task, so --force does not replace it; nothing was written", hint=hint
        )
    try:
        below.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=below, prefix=".holdfast-import-") as temporary:
            for one in made:
                _write_task(one, Path(temporary) / one.name)
            for target in targets:
                if target.exists():
                    shutil.rmtree(target)
                (Path(temporary) / target.name).replace(target)
    except OSError as refused:
        raise ImportRefused(f"cannot write {refused.filename or below}: {refused.strerror or refused}") from refused
    return targets


def _write_task(task: TaskFiles, folder: Path) -> None:
    for name, data in task.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755 if name in task.executable else 0o644)
    _check_spec(folder / SPEC)


def _check_spec(path: Path) -> None:
    wrong = [problem for problem in check(path, environ=os.environ).problems if problem.severity == "error"]
    if wrong:
        first = wrong[0]
        raise InvalidTask(f"the task cannot become a spec: {first.path}: {first.message}", hint=first.hint)
