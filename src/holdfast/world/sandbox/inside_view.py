"""The files of a process in a sandbox, as that process sees them, looked at from outside. Standard library only."""

from __future__ import annotations

import os
from collections.abc import Callable

from holdfast.world.sandbox import kernel
from holdfast.world.sandbox.exec_attempt import string_at
from holdfast.world.sandbox.file_calls import AT_CWD, FileUse

_LINKS = 8
"""That lead to something that is not there, one after the other."""
_LONGEST_PATH = 4096
_SEALED = (b"/usr/", b"/lib", b"/etc/", b"/proc/", b"/bin/", b"/sbin/")
"""Where no agent can put a link: nothing there leads into its workspace."""
_IN_ROOT = Callable[[int, bytes], int]


class InsideView:
    """One process, which waits for us. OSError if it is gone. Close it after use."""

    def __init__(self, pid: int, open_in_root: _IN_ROOT = kernel.open_in_root) -> None:
        self._at = f"/proc/{pid}"
        self._open = open_in_root
        self._root = os.open(f"{self._at}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._root)

    def target(self, use: FileUse) -> bytes | None:
        """The path that a call is given, links followed; None if it is none of the agent's own files."""
        memory = os.open(f"{self._at}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            name = string_at(memory, use.name, _LONGEST_PATH)
        finally:
            os.close(memory)
        if not name or (name.startswith(_SEALED) and b".." not in name):
            return None
        start = b"" if name.startswith(b"/") else self._folder(use.folder)
        return self.resolved(start + b"/" + name, follows=use.follows)

    def resolved(self, path: bytes, *, follows: bool = True) -> bytes | None:
        """Where that really is: as far as there is something, then the rest as it is written."""
        for _ in range(_LINKS):
            there, rest = self._there(path, follows)
            found = b"/".join([there.rstrip(b"/"), *rest])
            link = self._link(there, rest) if len(rest) > 1 or (rest and follows) else None
            if link is None:
                return found
            path = b"/".join([b"" if link.startswith(b"/") else there, link, *rest[1:]])
        return None

    def lstat(self, path: bytes) -> os.stat_result | None:
        """What is at a resolved path; None if nothing is."""
        try:
            return os.lstat(os.fsencode(f"{self._at}/root") + path)
        except OSError:
            return None

    def _there(self, path: bytes, follows: bool) -> tuple[bytes, list[bytes]]:
        """The longest part of a path that there is, and what is left of it."""
        parts = [part for part in path.split(b"/") if part not in (b"", b".")]
        kept = len(parts) if follows or not parts or parts[-1] == b".." else len(parts) - 1
        while kept:
            try:
                fd = self._open(self._root, b"/".join(parts[:kept]))
            except OSError:
                kept -= 1
                continue
            try:
                return os.readlink(b"/proc/self/fd/%d" % fd), parts[kept:]
            finally:
                os.close(fd)
        return b"/", parts

    def _link(self, there: bytes, rest: list[bytes]) -> bytes | None:
        """What a link says that leads nowhere."""
        try:
            return os.readlink(os.fsencode(f"{self._at}/root") + there + b"/" + rest[0])
        except OSError:
            return None

    def _folder(self, folder: int) -> bytes:
        name = "cwd" if folder == AT_CWD else f"fd/{folder}"
        return os.readlink(os.fsencode(f"{self._at}/{name}"))
