"""Which processes are left, told by a variable in their environment."""

from __future__ import annotations

import os
import time
from pathlib import Path


def marked(name: str, value: str) -> list[int]:
    """The live processes whose environment holds this variable."""
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            alive = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            continue
        if alive and f"{name}={value}".encode() in environ:
            found.append(pid)
    return found


def gone(name: str, value: str, within_s: float = 5.0) -> bool:
    """Whether no such process is left, now or soon."""
    until = time.monotonic() + within_s
    while marked(name, value):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
