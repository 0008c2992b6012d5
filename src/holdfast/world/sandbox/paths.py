"""Finds a path of a workspace without ever leaving it, whatever links an agent has made."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import PurePosixPath

from holdfast.errors import OutsideError

_LINKS = 40
"""As many as the kernel follows."""


def resolve(root: int, workspace: str, path: str) -> str | None:
    """The same place without links, relative to the folder `root` is open at; None if there is nothing.

    `workspace` is how programs inside name that folder. OutsideError if the path leaves it, or leads to what is
    neither a regular file nor a folder.
    """
    left = _parts(path, workspace, path)
    done: list[str] = []
    links = 0
    while left:
        part = left.pop()
        if part == "..":
            if not done:
                raise OutsideError(f"{path} leaves the workspace")
            done.pop()
            continue
        found = _stat(root, "/".join([*done, part]), path)
        if found is None or (left and not _passable(found)):
            return None
        if not stat.S_ISLNK(found.st_mode):
            done.append(part)
            continue
        links += 1
        if links > _LINKS:
            raise OutsideError(f"{path} is a link to itself")
        target = os.readlink("/".join([*done, part]), dir_fd=root)
        left += _parts(target, workspace, path)
        if target.startswith("/"):
            done.clear()
    return _usable(root, "/".join(done) or ".", path)


def _parts(path: str, workspace: str, asked: str) -> list[str]:
    """Last part first; an absolute path must begin with the workspace."""
    parts = PurePosixPath(path).parts
    if path.startswith("/"):
        base = PurePosixPath(workspace).parts
        if parts[: len(base)] != base:
            raise OutsideError(f"{asked} is not in the workspace" + (f": it leads to {path}" if path != asked else ""))
        parts = parts[len(base) :]
    return [*reversed(parts)]


def _passable(found: os.stat_result) -> bool:
    return stat.S_ISDIR(found.st_mode) or stat.S_ISLNK(found.st_mode)


def _stat(root: int, at: str, asked: str) -> os.stat_result | None:
    try:
        return os.stat(at, dir_fd=root, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as refused:
        if refused.errno == errno.ENAMETOOLONG:
            return None
        raise OutsideError(f"{asked} cannot be read: {refused.strerror}") from refused
    except ValueError:
        raise OutsideError(f"{asked!r} is no path") from None


def _usable(root: int, at: str, asked: str) -> str:
    found = _stat(root, at, asked)
    if found is not None and not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise OutsideError(f"{asked} is neither a regular file nor a folder")
    return at
