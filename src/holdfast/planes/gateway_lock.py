"""Allows one gateway per folder: finds its process, and cleans up after one that was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import UserError
from holdfast.folders import format_path

LOCK = "gateway.lock"


class _LockHeld(Exception):
    """Another process holds the lock; carries its pid, or 0 if unknown."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid)
        self.pid = pid


@contextmanager
def hold_gateway_lock(folder: Path) -> Iterator[None]:
    """Lock this folder for one gateway; raise UserError, with what to do, if another gateway is running in it."""
    try:
        lock = _acquire_lock(folder)
    except _LockHeld as held:
        end = f"; to stop it: kill {held.pid}" if held.pid else ""
        raise UserError(
            f"a gateway is already running in {format_path(folder)}" + (f": pid {held.pid}" if held.pid else ""),
            code="gateway-running",
            hint=f"its variables: holdfast gateway --print{end}",
        ) from None
    try:
        os.ftruncate(lock, 0)
        os.write(lock, str(os.getpid()).encode())
        yield
    finally:
        os.close(lock)


def is_gateway_running(folder: Path) -> bool:
    """Return whether a gateway is running in this folder."""
    if not (folder / LOCK).exists():
        return False
    try:
        os.close(_acquire_lock(folder))
    except _LockHeld:
        return True
    return False


def remove_leftovers(folder: Path) -> list[Path]:
    """Remove the files that a killed gateway left in this folder, and return what it removed."""
    leftovers = [path for path in (folder / "gateway", folder / "gateway.sock") if path.exists()]
    if not leftovers or is_gateway_running(folder):
        return []
    for path in leftovers:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return [path for path in leftovers if not path.exists()]


def _acquire_lock(folder: Path) -> int:
    fd = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.read(fd, 20).strip()
        os.close(fd)
        raise _LockHeld(int(pid) if pid.isdigit() else 0) from None
    return fd
