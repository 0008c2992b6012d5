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


@contextmanager
def hold_gateway_lock(folder: Path) -> Iterator[None]:
    """Lock this folder for one gateway; raise UserError, with what to do, if another gateway is running in it."""
    lock, owner = _acquire_lock(folder)
    if lock is None:
        end = f"; to stop it: kill {owner}" if owner else ""
        raise UserError(
            f"a gateway is already running in {format_path(folder)}" + (f": pid {owner}" if owner else ""),
            code="gateway-running",
            hint=f"its variables: holdfast gateway --print{end}",
        )
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
    lock, _ = _acquire_lock(folder)
    if lock is not None:
        os.close(lock)
    return lock is None


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


def _acquire_lock(folder: Path) -> tuple[int | None, int]:
    """Return the descriptor of the lock. If another process holds it, return None and its pid, or 0 if unknown."""
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.read(lock, 20).strip()
        os.close(lock)
        return None, int(pid) if pid.isdigit() else 0
    return lock, 0
