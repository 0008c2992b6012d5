"""Who runs a server: an unprivileged user where we are root, ourselves elsewhere."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class User:
    """An account of this machine that owns a server and its files."""

    uid: int
    gid: int


def server_user(*names: str) -> User | None:
    """The first account of these that the machine has, else nobody's; None where we may not choose."""
    if os.geteuid() != 0:
        return None
    import pwd

    for name in (*names, "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return User(found.pw_uid, found.pw_gid)
    return User(65534, 65534)


def reachable(path: Path, user: User | None) -> bool:
    """Whether that user may read a file or folder, so far as its modes and those above it say."""
    if user is None:
        return os.access(path, os.R_OK)
    path = path.resolve()
    return all(_allows(place, user, 1) for place in path.parents) and _allows(path, user, 4)


def _allows(path: Path, user: User, bit: int) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    shift = 6 if found.st_uid == user.uid else 3 if found.st_gid == user.gid else 0
    return bool(found.st_mode >> shift & bit)


def give(path: Path, user: User | None) -> None:
    """Makes that user the owner."""
    if user is not None:
        os.chown(path, user.uid, user.gid)
