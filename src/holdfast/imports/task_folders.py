"""Task folders by what is in them, and the folders of specs that they become: whole, or not at all."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from holdfast.errors import UserError
from holdfast.imports import harbor_task as harbor
from holdfast.imports import terminal_bench_task as terminal_bench
from holdfast.imports.foreign_task import ForeignTask
from holdfast.imports.task_environment import environment_of
from holdfast.imports.task_files import SPEC, TaskFiles, task_files

_READERS = {harbor.MARK: harbor.harbor_task, terminal_bench.MARK: terminal_bench.terminal_bench_task}


def is_task_folder(path: Path) -> bool:
    """Whether a task lies there, by the file that says what it is."""
    return any((path / mark).is_file() for mark in _READERS)


def tasks_below(path: Path) -> Iterator[Path]:
    """The folder if it is a task, else the tasks directly below it; UserError if there is none."""
    if is_task_folder(path):
        yield path
        return
    found = [one for one in sorted(path.iterdir()) if one.is_dir() and is_task_folder(one)]
    if not found:
        hint = "a Harbor task has a task.toml, one of terminal-bench a task.yaml"
        raise UserError(f"{path}: neither a task of Harbor or terminal-bench nor a folder of such tasks", hint=hint)
    yield from found


def read_task(folder: Path) -> ForeignTask:
    """The task of a folder."""
    mark = next(mark for mark in _READERS if (folder / mark).is_file())
    return _READERS[mark](folder)


def converted(folder: Path, *, agent: str | None, solution: bool) -> TaskFiles:
    """What a task becomes; UserError says what is wrong with it."""
    task = read_task(folder)
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,99}", task.name):
        raise UserError(f"{folder}: {task.name!r} is no name for a folder", hint="rename the task")
    if solution and not task.solution:
        raise UserError(f"{folder}: there is no solution that is a script", hint="leave out --solution")
    return task_files(task, environment_of(task), agent=agent, solution=solution)


def write_task(made: TaskFiles, below: Path, *, force: bool) -> Path:
    """The folder of the task, below another; what does not read as a spec is not written."""
    target = below / made.name
    if target.exists() and not force:
        raise UserError(f"{target} is already there; nothing was written", hint="overwrite it with --force")
    try:
        below.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=below, prefix=f".{made.name}.") as beside:
            whole = Path(beside) / made.name
            for name, data in made.files.items():
                path = whole / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                path.chmod(0o755 if name in made.executable else 0o644)
            _check(whole / SPEC)
            if target.exists():
                shutil.rmtree(target)
            whole.replace(target)
    except OSError as refused:
        raise UserError(f"cannot write {refused.filename or target}: {refused.strerror}") from refused
    return target


def _check(path: Path) -> None:
    from holdfast.spec import check

    wrong = [problem for problem in check(path, environ=os.environ).problems if problem.severity == "error"]
    if wrong:
        first = wrong[0]
        raise UserError(f"the task does not become a spec: {first.path}: {first.message}", hint=first.hint)
