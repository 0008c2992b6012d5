"""Temporary folders that name their owner, to find and remove those of a killed process.

A folder's name has the process id, and its lock file is locked while that process, or a fork of it, lives.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK = ".lock"
UNLOCKED_S = 60.0
"""A folder without a lock that is older than this was left by a process that died while creating it."""

_NAME = r"holdfast-[a-z]+-\d+-\w+"
_MEMORY = "/dev/shm"  # noqa: S108  # a folder in memory, where there is one
_held: dict[Path, int] = {}
"""The locks of this process's folders."""


def make(kind: str, *, in_memory: bool = False) -> Path:
    """Make a folder that only its owner can read, in memory if the machine offers that; `remove` it after use."""
    import tempfile

    fast = in_memory and os.path.isdir(_MEMORY) and os.access(_MEMORY, os.W_OK | os.X_OK)
    path = Path(tempfile.mkdtemp(prefix=f"holdfast-{kind}-{os.getpid()}-", dir=_MEMORY if fast else None))
    # The process id in the name may be reused, or may be that of another container. The kernel releases the lock with
    # its last holder, so a lock that can be taken belongs to nobody. It gets its name when it is already locked.
    fd = os.open(path / f"{LOCK}.new", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.rename(path / f"{LOCK}.new", path / LOCK)
    _held[path] = fd
    return path


def remove(path: Path) -> None:
    """Remove a folder and its contents."""
    _remove_tree(path)
    fd = _held.pop(path, None)
    if fd is not None:
        os.close(fd)


@contextmanager
def open_folder(kind: str, *, in_memory: bool = False) -> Iterator[Path]:
    """Make a folder and remove it at the end of the context."""
    path = make(kind, in_memory=in_memory)
    try:
        yield path
    finally:
        remove(path)


def sweep() -> list[Path]:
    """Remove the folders of dead processes of this user; return their paths."""
    dead = [Path(entry.path) for entry in _list_entries() if _is_dead(entry)]
    for path in dead:
        _remove_tree(path)
    return sorted(path for path in dead if not path.exists())


def _list_entries() -> list[os.DirEntry[str]]:
    """List what `make` may have made. The tempfile module knows best where, but is slow to import."""
    tempfile = sys.modules.get("tempfile")
    by_environ = filter(None, map(os.environ.get, ("TMPDIR", "TEMP", "TMP")))
    places = {tempfile.gettempdir()} if tempfile else {*by_environ, "/tmp"}  # noqa: S108
    listed = []
    for place in {*places, _MEMORY}:
        try:
            with os.scandir(place) as entries:
                listed += [entry for entry in entries if entry.name.startswith("holdfast-")]
        except OSError:
            continue
    return listed


def _remove_tree(path: Path) -> None:
    from shutil import rmtree

    rmtree(path, ignore_errors=True)


def _is_dead(entry: os.DirEntry[str]) -> bool:
    """Return whether it is a Holdfast folder of this user that no process holds any more."""
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and re.fullmatch(_NAME, entry.name)
    return bool(own) and _is_unlocked(Path(entry.path) / LOCK, time.time() - status.st_mtime)


def _is_unlocked(lock: Path, age_s: float) -> bool:
    """Return whether no process holds the lock, including those of other containers."""
    try:
        fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return age_s > UNLOCKED_S
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
