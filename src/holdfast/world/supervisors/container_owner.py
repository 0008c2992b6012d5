"""Labels containers with the process that owns them, to find and remove those of a killed run."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

LABEL = "holdfast"
"""The label of every Holdfast container; its value is the owner."""
_FORM = f'{{{{.Names}}}} {{{{.Label "{LABEL}"}}}}'
_LIMIT_S = 10.0


def identify_owner() -> str:
    """Identify this process: machine, boot time, pid namespace, pid, start time."""
    return "/".join((*_identify_machine(), str(os.getpid()), _read_start_time(os.getpid())))


def is_gone(owner_label: str) -> bool:
    """Return whether an owner is certainly gone: one on another machine or in another container may still be alive."""
    parts = owner_label.split("/")
    if len(parts) != 5:
        return False
    host, boot, space, pid, began = parts
    own_host, own_boot, own_space = _identify_machine()
    if host != own_host or not pid.isdigit():
        return False
    # Process ids repeat, after a restart of the machine and also without one. The time of the boot and the start time
    # of the process tell an owner from a later process with its number.
    return boot != own_boot or (space == own_space and _read_start_time(int(pid)) != began)


def sweep() -> list[str]:
    """Remove the containers of dead owners and return their names; none without an engine."""
    listed = _run_docker("ps", "--all", "--filter", f"label={LABEL}", "--format", _FORM) or ""
    owners = dict(line.partition(" ")[::2] for line in listed.splitlines())
    leftover = [name for name, owner_label in owners.items() if is_gone(owner_label)]
    return [name for name in leftover if _run_docker("rm", "--force", "--volumes", name) is not None]


def _run_docker(*words: str) -> str | None:
    """Return the output of the client; None if it is not installed or fails."""
    client = shutil.which("docker")
    if client is None:
        return None
    try:
        ran = subprocess.run(  # noqa: S603
            [client, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if ran.returncode else ran.stdout.decode("utf-8", "replace")


def _identify_machine() -> tuple[str, str, str]:
    host = platform.node().replace("/", "_")
    space = Path("/proc/self/ns/pid")
    return host, _read(Path("/proc/sys/kernel/random/boot_id")), os.readlink(space) if space.is_symlink() else ""


def _read_start_time(pid: int) -> str:
    """Return the start time of a process in ticks since boot; empty if there is no such process."""
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()  # the name before them may contain anything
    return fields[19] if fields else ""


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
