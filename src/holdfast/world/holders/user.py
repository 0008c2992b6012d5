"""Who programs run as that are not ours."""

from __future__ import annotations

import os
from collections.abc import Mapping

NOBODY = 65534


def whom(environ: Mapping[str, str] = os.environ) -> tuple[int, int]:
    """The user and group that sandboxes run as: never root."""
    if os.getuid() != 0:
        return os.getuid(), os.getgid()
    uid, gid = environ.get("SUDO_UID", ""), environ.get("SUDO_GID", "")
    if uid.isdigit() and int(uid) and gid.isdigit() and int(gid):
        return int(uid), int(gid)
    return NOBODY, NOBODY
