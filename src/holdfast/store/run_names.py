"""What a stored run may be called: its id, `latest`, a part of it, or a path to its folder."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.errors import UsageError
from holdfast.folders import OWN_FILES, own_folder_of, path_here, runs_folder_here
from holdfast.store.run_locks import is_written

NEWEST = ("latest", "last")
PARTS = "parts"
"""The folder of a run of several parts: in it a run each."""

_FILES = frozenset(("trials.jsonl", "spec.yaml", "ended.json", "score.json", "overall.json", PARTS))


def name_here(path: Path) -> str:
    """How a command in this folder names the run: by its id where runs are looked for here, else by its path."""
    runs = path.parents[2] if path.parent.name == PARTS else path.parent
    if runs.absolute() == runs_folder_here().absolute():
        return id_of(path)
    return path_here(path)


def stored_runs(runs: Path) -> list[Path]:
    """The folders of the runs that are stored, by number, the newest last; one without a run.json is none."""
    try:
        names = [entry.name for entry in os.scandir(runs) if entry.name.isdigit()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    there = [name for name in names if os.path.isfile(f"{runs}/{name}/run.json")]
    return [runs / name for name in sorted(there, key=int)]


def stored_files(runs: Path) -> list[Path]:
    """The runs and all that Holdfast keeps with them, in a folder that may hold files of the user too."""
    return [*stored_runs(runs), *(own_folder_of(runs) / name for name in OWN_FILES)]


def damaged_runs(runs: Path) -> list[Path]:
    """The folders named like runs that hold only a part of one, or that may not be looked at."""
    try:
        names = [entry.name for entry in os.scandir(runs) if entry.name.isdigit()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    lacking = (runs / name for name in names if not os.path.isfile(f"{runs}/{name}/run.json"))
    return [path for path in lacking if is_damaged(path)]


def is_damaged(path: Path) -> bool:
    """Whether a part of a run lies there; not of one that is just being started."""
    if not path.name.isdigit() or is_run(path):
        return False
    try:
        found = os.listdir(path)
    except PermissionError:
        return True
    except OSError:
        return False
    return any(name in _FILES or name.startswith(("observations-", "verdicts-")) for name in found) and not is_written(
        path
    )


def parts_of(run: Path) -> list[Path]:
    """The folders of the parts of a run, by name; none of one that has no parts."""
    folder = f"{run}/{PARTS}"
    try:
        names = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [run / PARTS / name for name in names if os.path.isfile(f"{folder}/{name}/run.json")]


def is_run(path: Path) -> bool:
    """Whether a run lies there, as far as can be told."""
    return os.path.isfile(path / "run.json")  # false where it may not be looked at


def id_of(path: Path) -> str:
    """`0007`, or `0007/contract` of a part."""
    return f"{path.parent.parent.name}/{path.name}" if path.parent.name == PARTS else path.name


def run_folder(runs: Path, id: str) -> Path:
    """Where the run of that id lies."""
    number, _, part = id.partition("/")
    return runs / number / PARTS / part if part else runs / number


def single_run(run: Path) -> Path:
    """The folder of the run, or of its only part; UsageError of one that has several."""
    parts = parts_of(run)
    if len(parts) > 1:
        names = ", ".join(map(id_of, parts))
        raise UsageError(
            f"run {id_of(run)} has {len(parts)} parts", hint=f"name one of them: {names}", code="run-ambiguous"
        )
    return parts[0] if parts else run


def find_run(runs: Path, name: str) -> Path:
    """The folder of the run of that name; UsageError says which there are."""
    head, _, part = name.partition("/")
    stored = stored_runs(runs)
    places = [stored[-1]] if head in NEWEST and stored else [runs / head, runs / head.zfill(4)]
    tried = [place / PARTS / part if part else place for place in places]
    if head not in NEWEST:
        tried.insert(0, Path(name))
    for path in tried:
        if is_run(path) or is_damaged(path):
            return path
    if os.path.isfile(name):
        raise UsageError(
            f"{name} is a file, not a run",
            hint=f"name a run by its id or its folder, such as {runs}/0007",
            code="run-unknown",
        )
    raise UsageError(f"there is no run {name!r}", hint=_hint(runs, stored, tried if part else ()), code="run-unknown")


def _hint(runs: Path, stored: list[Path], tried: list[Path] | tuple[Path, ...]) -> str:
    for path in tried:
        parts = parts_of(path.parent.parent) if path.parent.name == PARTS else []
        if parts:
            return f"its parts are: {', '.join(id_of(one) for one in parts)}"
    have = [path.name for path in stored]
    return f"there are: {', '.join(have[-8:])}, and latest" if have else f"no run is stored in {runs}"
