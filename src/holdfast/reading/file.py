"""A file that the user wrote, read as text within limits; and paths of the workspace, which must not leave it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from stat import S_ISREG

from msgspec import Struct

from holdfast.model.spec import Problem

MAX_BYTES = 10_000_000


class Source(Struct, frozen=True):
    """The content of a file; `problem` says why it cannot be used, if so."""

    data: bytes = b""
    text: str = ""
    problem: Problem | None = None


def opens(path: Path) -> bool:
    """Whether a file or a folder is at the path: who opens anything else may wait forever."""
    return os.path.isfile(path) or os.path.isdir(path)


def read_file(path: Path, *, absent: str = "", piped: bool = False) -> Source:
    """The file, never raising for what is there; `absent` is the hint where nothing is.

    `piped`: it may be a pipe, too, since the user names it and not a spec.
    """
    data = _bytes(path, absent, piped)
    if isinstance(data, Problem):
        return Source(problem=data)
    try:
        return Source(data, data.decode("utf-8-sig"))
    except UnicodeDecodeError as broken:
        return Source(data, data.decode("utf-8", "replace"), _not_utf8(data, broken.start))


def _bytes(path: Path, absent: str, piped: bool) -> bytes | Problem:
    try:
        if path.is_dir():
            return Problem("is a folder, not a file", code="unreadable-file")
        with open(path, "rb", opener=None if piped else _at_once) as stream:
            if not piped and not S_ISREG(os.fstat(stream.fileno()).st_mode):
                return Problem("is not a regular file", code="unreadable-file")
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return Problem("there is no such file", hint=absent, code="unreadable-file")
    except (OSError, ValueError) as broken:
        reason = broken.strerror if isinstance(broken, OSError) and broken.strerror else str(broken)
        return Problem(f"cannot be read: {reason}", code="unreadable-file")
    if len(data) > MAX_BYTES:
        return Problem(f"larger than {MAX_BYTES // 1_000_000} MB", code="unreadable-file")
    return data


def _at_once(path: str, flags: int) -> int:
    """Opens without waiting for whoever is to write a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _not_utf8(data: bytes, offset: int) -> Problem:
    line = data.count(b"\n", 0, offset) + 1
    start = data.rfind(b"\n", 0, offset) + 1
    column = len(data[start:offset].decode("utf-8", "replace")) + 1
    return Problem("not UTF-8 text", line=line, column=column, hint="save the file as UTF-8", code="not-utf8")


_WORKSPACE = PurePosixPath("/workspace")
_HOME = PurePosixPath("/home/agent")
_TAKEN = ("agent", "bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "nix", "opt", "proc", "run", "sbin", "sys",
          "tmp", "usr", "var", "workspace")  # fmt: skip
"""Folders at the top of every sandbox that have a meaning there."""


def in_workspace(path: str) -> str:
    """A path of the workspace, which may be written as programs inside see it, relative to it."""
    pure = PurePosixPath(path)
    return str(pure.relative_to(_WORKSPACE)) if pure.is_relative_to(_WORKSPACE) else path


def can_be_workdir(path: str) -> bool:
    """Whether the workspace can also be found at that path in a sandbox."""
    pure = PurePosixPath(path)
    top = pure.parts[1:2]
    if not pure.is_absolute() or ".." in pure.parts or not top or top[0] in _TAKEN:
        return False
    return not pure.is_relative_to(_HOME) and not _HOME.is_relative_to(pure)


def outside(path: str, folder: str = "the workspace") -> Iterable[tuple[str, str]]:
    """What is wrong with a path that leaves the workspace, or another folder."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        yield "path", f"must stay inside {folder}: no .. and no absolute path"


def covers(allowed: Iterable[str], path: str) -> bool:
    """Whether one of them is the path, a folder that it lies in, or a glob that it fits."""
    pure = PurePosixPath(path)
    return any(pure.is_relative_to(PurePosixPath(one)) or fnmatchcase(path, one) for one in allowed)
