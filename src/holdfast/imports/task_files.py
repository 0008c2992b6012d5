"""Finds task folders, converts them to folders with a spec, and writes all of these or none."""

from __future__ import annotations

import base64
import io
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files as packaged
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from holdfast.errors import UserError
from holdfast.imports import harbor_task as harbor
from holdfast.imports import terminal_bench_task as terminal_bench
from holdfast.imports.foreign_task import ForeignTask, InvalidTask, TaskEgress
from holdfast.imports.task_environment import TaskEnvironment, build_environment
from holdfast.imports.task_tools import NAMES
from holdfast.imports.verify_task import rewrite_paths
from holdfast.reading.file import can_be_workdir
from holdfast.spec import check
from holdfast.world.supervisors.messages import WORKSPACE

SPEC = "holdfast.yaml"
_SCRIPT = "verify.py"
_FILES = "files"
_SOLUTION = "solution"
_GRACE_S = 30
"""Extra seconds for the check to unpack the tests and to report."""
NO_AGENT = "true"
"""The placeholder agent of the spec: it does nothing, and so it fails."""


_SOLUTION_S = 600.0
"""Default seconds for a reference solution."""
_NAMED = 5
"""Files that are named in one line."""


class TaskFiles(Struct, frozen=True):
    """The files to write for a task."""

    name: str
    files: dict[str, bytes]
    left_out: tuple[str, ...]
    executable: frozenset[str] = frozenset()


def build_task_files(task: ForeignTask, place: TaskEnvironment, *, agent: str | None, solution: bool) -> TaskFiles:
    """Return the files by name; with `solution` the reference solution is the agent."""
    paths = {place.workdir: WORKSPACE} if place.workdir != "/" else {}
    made = {f"{_FILES}/{name}": path.read_bytes() for name, path in place.files.items()}
    made[_SCRIPT] = _build_script(task, place)
    if solution:
        inside = {**paths, "/solution": "/agent"}
        made |= {f"{_SOLUTION}/{name}": _rewrite_file(data, inside) for name, data in task.solution.items()}
    affected = [name for name, path in place.files.items() if _rewrite_file(data := path.read_bytes(), paths) != data]
    left_out = (*task.left_out, *place.left_out, *_list_unmoved(place, affected))
    spec = _build_spec(task, place, paths, agent, solution)
    _refuse_references(task, spec)
    text = _format_header(task, place, left_out) + _dump_yaml(spec)
    run = frozenset(f"{_FILES}/{name}" for name, path in place.files.items() if os.access(path, os.X_OK))
    return TaskFiles(task.folder, {SPEC: text.encode(), **made}, left_out, run)


def _build_spec(
    task: ForeignTask, place: TaskEnvironment, paths: dict[str, str], agent: str | None, solution: bool
) -> dict[str, Any]:
    setup = {
        "packages": place.packages,
        "commands": [rewrite_paths(command, paths) for command in place.commands],
        "env": {name: rewrite_paths(value, paths) for name, value in place.env.items()},
        "workdir": place.workdir if can_be_workdir(place.workdir) else None,
    }
    tests: dict[str, Any] = {
        "type": "custom",
        "script": _SCRIPT,
        "runs_in": "sandbox",
        "timeout": _format_time(task.tests.timeout_s + _GRACE_S),
    }
    if task.solution:
        tests["reference_timeout"] = _format_time(_get_solution_s(task))
    spec: dict[str, Any] = {
        "version": 1,
        "id": task.id,
        "description": task.description or f"{task.name}, imported from {task.origin}",
        "task": {"prompt": rewrite_paths(task.prompt, paths)},
        "agent": _build_agent(task, agent, solution),
        "base": place.image,
        "setup": {key: value for key, value in setup.items() if value},
        "fixtures": [{"type": "directory", "source": _FILES, "path": "."}] if place.files else [],
        "network": _build_network(task.egress),
        "resources": task.resources,
        "invariants": {
            "tests_pass": {"description": "The task's own tests pass", "gate": True, "check": tests},
        },
    }
    return {key: value for key, value in spec.items() if value}


def _build_agent(task: ForeignTask, agent: str | None, solution: bool) -> dict[str, Any]:
    started = {"type": "command", "command": agent or NO_AGENT}
    if solution:
        started = {"type": "command", "command": "bash /agent/solve.sh", "dir": f"./{_SOLUTION}"}
    return started | ({"timeout": _format_time(task.agent_timeout_s)} if task.agent_timeout_s is not None else {})


def _build_network(egress: TaskEgress | None) -> dict[str, Any]:
    if egress is None:
        return {}
    hosts = {"allow": list(egress.allow)} if egress.default == "deny" else {}
    return {"egress": {"default": egress.default, **hosts}}


def _refuse_references(task: ForeignTask, spec: Mapping[str, Any]) -> None:
    """Reject references: a third party's file must not read the user's environment."""
    setup = spec.get("setup", {})
    read = {
        **{key: spec.get(key) for key in ("base", "network", "resources")},
        **{k: setup.get(k) for k in ("packages", "env")},
    }
    section = next((name for name, value in read.items() if "${" in str(value)), None)
    if section is not None:
        hint = "write the value itself into the task"
        raise InvalidTask(f"{task.name}: its {section} would be read from your environment: it has ${{", hint=hint)


def _build_script(task: ForeignTask, place: TaskEnvironment) -> bytes:
    """Return the script with the tests in it: the sandbox sees it only after the agent has ended."""
    tests = task.tests
    settings = {
        "workdir": place.workdir, "script": tests.script, "result": tests.result, "timeout_s": tests.timeout_s,
        "env": tests.env, "solution_timeout_s": _get_solution_s(task), "tools": NAMES,
    }  # fmt: skip
    source, tools = (
        packaged("holdfast.imports").joinpath(name).read_text(encoding="utf-8")
        for name in ("verify_task.py", "task_tools.py")
    )
    for name, value in (("SETTINGS: dict[str, Any] = {}", settings), ('TESTS = ""', _archive(tests.files)),
                        ('SOLUTION = ""', _archive(task.solution)), ('TOOLS = ""', tools)):  # fmt: skip
        source = source.replace(f"\n{name}\n", f"\n{name.partition(' = ')[0]} = {value!r}\n", 1)
    return source.encode()


def _get_solution_s(task: ForeignTask) -> float:
    return task.agent_timeout_s or _SOLUTION_S


def _archive(files: Mapping[str, bytes]) -> str:
    """Return the files as one text; equal files give equal text."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), files[name])
    return base64.b64encode(data.getvalue()).decode()


def _rewrite_file(data: bytes, paths: dict[str, str]) -> bytes:
    try:
        return rewrite_paths(data.decode("utf-8"), paths).encode()
    except UnicodeDecodeError:
        return data


def _list_unmoved(place: TaskEnvironment, affected: Sequence[str]) -> list[str]:
    """Return the task's files that name a path which is not the workspace here; they stay unchanged."""
    if not affected or can_be_workdir(place.workdir):
        return []
    listed = ", ".join(affected[:_NAMED]) + (f" and {len(affected) - _NAMED} more" if len(affected) > _NAMED else "")
    return [f"{place.workdir} in {listed}: the folder is {WORKSPACE} here, so change the path if it matters"]


def _format_header(task: ForeignTask, place: TaskEnvironment, left_out: Iterable[str]) -> str:
    lines = [f"{task.name}, imported from {task.origin}. {place.workdir} of its container is {WORKSPACE} here."]
    lines += [f"Not carried over: {line}" for line in left_out]
    lines += [f"Not used here: {line}" for line in place.aside]
    return "".join(f"# {_flatten(line)}\n" for line in lines)


def _flatten(line: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in line)


def _format_time(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms" if seconds % 1 else f"{round(seconds)}s"


def _dump_yaml(spec: dict[str, Any]) -> str:
    class Blocks(yaml.SafeDumper):
        """Texts of several lines as they are read."""

    def represent(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Blocks.add_representer(str, represent)
    text: str = yaml.dump(spec, Dumper=Blocks, sort_keys=False, allow_unicode=True, width=100)
    return text


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
