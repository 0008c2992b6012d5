"""One gateway stands in a folder at a time: who holds it, and what one that was killed has left there."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import UserError
from holdfast.folders import path_here

LOCK = "gateway.lock"


class _Held(Exception):
    """Another process has the lock; its number, 0 if it does not say."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid)
        self.pid = pid


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keeps every other gateway out of this folder; UserError, with what to do, if one is here already."""
    try:
        lock = _locked(folder)
    except _Held as held:
        end = f"; to end it: kill {held.pid}" if held.pid else ""
        raise UserError(
            f"a gateway already runs in {path_here(folder)}" + (f": pid {held.pid}" if held.pid else ""),
            code="gateway-running",
            hint=f"its variables: holdfast gateway --print{end}",
        ) from None
    try:
        os.ftruncate(lock, 0)
        os.write(lock, str(os.getpid()).encode())
        yield
    finally:
        os.close(lock)


def stands(folder: Path) -> bool:
    """Whether a gateway runs in this folder."""
    if not (folder / LOCK).exists():
        return False
    try:
        os.close(_locked(folder))
    except _Held:
        return True
    return False


def clear(folder: Path) -> list[Path]:
    """Removes what a gateway that was killed left in this folder; what was removed."""
    left = [path for path in (folder / "gateway", folder / "gateway.sock") if path.exists()]
    if not left or stands(folder):
        return []
    for path in left:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return [path for path in left if not path.exists()]


def _locked(folder: Path) -> int:
    fd = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        said = os.read(fd, 20).strip()
        os.close(fd)
        raise _Held(int(said) if said.isdigit() else 0) from None
    return fd
