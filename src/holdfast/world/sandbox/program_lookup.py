"""Whether a program can be found inside a sandbox, told from outside, before it is started. Standard library only."""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Mapping

_LINKS = 40
"""As many as the kernel follows."""
_DEFAULT_PATH = "/bin:/usr/bin"
"""Where execvp looks without a PATH."""


class ProgramLookup:
    """Paths of a sandbox, from where they are outside: the longest that fits counts."""

    def __init__(self, mounts: Mapping[str, str]) -> None:
        self._mounts = mounts

    def refused(self, name: str, path: str | None, cwd: str) -> int:
        """The errno that executing it would give; 0 if it can be executed or lies where we do not look."""
        if "/" in name:
            return self._executable(posixpath.join(cwd, name))
        found = [self._executable(posixpath.join(cwd, folder or ".", name)) for folder in _folders(path)]
        if 0 in found or not found:
            return 0 if found else errno.ENOENT
        return errno.EACCES if errno.EACCES in found else errno.ENOENT

    def outside(self, path: str) -> str | None:
        """Where that is outside, links followed; None where it is not known. OSError if it is not there."""
        left = [part for part in reversed(path.split("/")) if part not in ("", ".")]
        at, links = "/", 0
        while left:
            part = left.pop()
            at = posixpath.normpath(posixpath.join(at, part))
            target = self._link(at)
            if target is None:
                continue
            links += 1
            if links > _LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            at = "/" if target.startswith("/") else posixpath.dirname(at)
            left += [piece for piece in reversed(target.split("/")) if piece not in ("", ".")]
        return self._mounted(at)

    def _executable(self, path: str) -> int:
        try:
            outside = self.outside(path)
            if outside is None:
                return 0
            if not os.path.isfile(outside):
                return errno.EACCES if os.path.exists(outside) else errno.ENOENT
        except OSError as refused:
            return refused.errno or errno.ENOENT
        return 0 if os.stat(outside).st_mode & 0o111 else errno.EACCES

    def _link(self, at: str) -> str | None:
        outside = self._mounted(at)
        if outside is None or at in self._mounts:
            return None
        return os.readlink(outside) if os.path.islink(outside) else None

    def _mounted(self, at: str) -> str | None:
        if at.startswith("/proc"):
            return None  # only a process inside can tell
        for inside in sorted(self._mounts, key=len, reverse=True):
            if at == inside or at.startswith(inside.rstrip("/") + "/"):
                return self._mounts[inside] + at[len(inside.rstrip("/")) :]
        return None


def _folders(path: str | None) -> list[str]:
    return (_DEFAULT_PATH if path is None else path).split(":")
