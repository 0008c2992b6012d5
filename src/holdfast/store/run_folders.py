"""The folders of stored runs: found by an id, `latest`, a part or a path, and whether a process writes to one."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from shlex import quote

from holdfast.errors import UsageError
from holdfast.folders import OWN_FILES, format_path, get_local_runs_folder, get_own_folder_of
from holdfast.model.spec import PartAsked, get_run_command

LOCKS = Path("/proc/locks")


def is_written(run: Path) -> bool:
    """Return whether a process holds the run's lock; the kernel releases it when that process ends in any way."""
    try:
        stat = os.stat(run / "lock")
    except OSError:
        return False
    try:
        return _is_listed(LOCKS.read_text("ascii", "replace"), stat)
    except OSError:
        return _is_held(run / "lock")


def _is_listed(table: str, about: os.stat_result) -> bool:
    """Return whether the kernel's table has an exclusive lock on the file: `1: FLOCK ADVISORY WRITE 4711 fe:01:1234 0
    EOF`.
    """
    major, minor = os.major(about.st_dev), os.minor(about.st_dev)
    for line in table.splitlines():
        words = line.split()
        if len(words) < 6 or words[1:4] != ["FLOCK", "ADVISORY", "WRITE"]:
            continue
        device, _, inode = words[5].rpartition(":")
        # For virtual devices (overlayfs, btrfs) the table has another number than stat.
        if inode == str(about.st_ino) and (not major or device == f"{major:02x}:{minor:02x}"):
            return True
    return False


def _is_held(lock: Path) -> bool:
    """Return whether a shared lock would have to wait, for kernels without such a table. It is released immediately."""
    try:
        fd = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


NEWEST = ("latest", "last")
PARTS = "parts"
"""The folder with the parts of a multi-part run, each a run."""

_FILES = frozenset(("trials.jsonl", "spec.yaml", "ended.json", "score.json", "overall.json", PARTS))


def format_name(path: Path) -> str:
    """Return the run's name for a command in this folder: its id if runs are looked up here, otherwise its path."""
    runs = path.parents[2] if path.parent.name == PARTS else path.parent
    if runs.absolute() == get_local_runs_folder().absolute():
        return get_id(path)
    return format_path(path)


def format_resume(path: Path, part: PartAsked) -> str:
    """Return the command that resumes the run; a part of a multi-part run is resumed with all of it."""
    if path.parent.name == PARTS:
        path, part = path.parents[1], "ci"
    return f"{get_run_command(part)} --resume {quote(format_name(path))}"


def list_stored_runs(runs: Path) -> list[Path]:
    """Return the folders of stored runs by number, newest last; a folder without run.json does not count."""
    there = [name for name in _list_numbers(runs) if os.path.isfile(f"{runs}/{name}/run.json")]
    return [runs / name for name in sorted(there, key=int)]


def _list_numbers(runs: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(runs) if entry.name.isdigit()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def list_stored_files(runs: Path) -> list[Path]:
    """Return the runs and everything that Holdfast stores with them, in a folder that may also hold the user's
    files.
    """
    return [*list_stored_runs(runs), *(get_own_folder_of(runs) / name for name in OWN_FILES)]


def list_damaged_runs(runs: Path) -> list[Path]:
    """List folders named like runs that are incomplete or cannot be read."""
    return [runs / name for name in _list_numbers(runs) if is_damaged(runs / name)]


def is_damaged(path: Path) -> bool:
    """Return whether the folder contains an incomplete run; a run that is just starting does not count."""
    if not path.name.isdigit() or is_run(path):
        return False
    try:
        names = os.listdir(path)
    except PermissionError:
        return True
    except OSError:
        return False
    return any(name in _FILES or name.startswith(("observations-", "verdicts-")) for name in names) and not is_written(
        path
    )


def list_parts(run: Path) -> list[Path]:
    """Return the folders of a run's parts, by name; none if it has no parts."""
    folder = f"{run}/{PARTS}"
    try:
        names = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [run / PARTS / name for name in names if os.path.isfile(f"{folder}/{name}/run.json")]


def is_run(path: Path) -> bool:
    """Return whether the folder seems to contain a run."""
    return os.path.isfile(path / "run.json")  # false if it may not be read


def get_id(path: Path) -> str:
    """`0007`, or `0007/contract` for a part."""
    return f"{path.parent.parent.name}/{path.name}" if path.parent.name == PARTS else path.name


def get_run_folder(runs: Path, id: str) -> Path:
    """Return the folder of the run with that id."""
    number, _, part = id.partition("/")
    return runs / number / PARTS / part if part else runs / number


def get_single_run(run: Path) -> Path:
    """Return the folder of the run, or of its only part; raise UsageError if it has several."""
    parts = list_parts(run)
    if len(parts) > 1:
        names = ", ".join(map(get_id, parts))
        raise UsageError(
            f"run {get_id(run)} has {len(parts)} parts", hint=f"name one of them: {names}", code="run-ambiguous"
        )
    return parts[0] if parts else run


def find_run(runs: Path, name: str, is_by_product: Callable[[Path], bool]) -> Path:
    """Return the folder of the run with that name; UsageError lists the existing ones.

    `latest` is the newest that is not a by-product of a command, or the newest of all if there is no other.
    """
    head, _, part = name.partition("/")
    stored = list_stored_runs(runs)
    places = [runs / head, runs / head.zfill(4)]
    if head in NEWEST and stored:
        places = [next((path for path in reversed(stored) if not is_by_product(path)), stored[-1])]
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
    raise UsageError(
        f"there is no run {name!r}", hint=_build_hint(runs, stored, tried if part else ()), code="run-unknown"
    )


def _build_hint(runs: Path, stored: list[Path], tried: list[Path] | tuple[Path, ...]) -> str:
    for path in tried:
        parts = list_parts(path.parent.parent) if path.parent.name == PARTS else []
        if parts:
            return f"its parts are: {', '.join(get_id(one) for one in parts)}"
    have = [path.name for path in stored]
    return f"available: {', '.join(have[-8:])}, and latest" if have else f"no run is stored in {runs}"
