"""Whether a process is writing to a run. Looking never takes the lock itself."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

LOCKS = Path("/proc/locks")


def is_written(run: Path) -> bool:
    """Whether a process holds the run's lock; the kernel releases it when that process ends in any way."""
    try:
        about = os.stat(run / "lock")
    except OSError:
        return False
    try:
        return _is_listed(LOCKS.read_text("ascii", "replace"), about)
    except OSError:
        return _is_held(run / "lock")


def _is_listed(table: str, about: os.stat_result) -> bool:
    """Whether the kernel's table has an exclusive lock on the file: `1: FLOCK ADVISORY WRITE 4711 fe:01:1234 0 EOF`."""
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
    """Whether a shared lock would have to wait, for kernels without such a table. It is released immediately."""
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
