"""Reads a user's file as text within limits, and checks that paths stay inside the workspace."""

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
    """The content of a file, or the problem that makes it unusable."""

    data: bytes = b""
    text: str = ""
    problem: Problem | None = None


def is_openable(path: Path) -> bool:
    """Return whether the path is a file or a folder; opening anything else may block forever."""
    return os.path.isfile(path) or os.path.isdir(path)


def read_file(path: Path, *, absent: str = "", piped: bool = False) -> Source:
    """Read the file and return problems instead of raising; `absent` is the hint if there is no file.

    `piped`: a pipe is allowed too, because the user named it on the command line.
    """
    data = _read_bytes(path, absent, piped)
    if isinstance(data, Problem):
        return Source(problem=data)
    try:
        return Source(data, data.decode("utf-8-sig"))
    except UnicodeDecodeError as broken:
        return Source(data, data.decode("utf-8", "replace"), _report_not_utf8(data, broken.start))


def _read_bytes(path: Path, absent: str, piped: bool) -> bytes | Problem:
    def open_now(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NONBLOCK)  # of a pipe: without waiting for a writer

    try:
        if path.is_dir():
            return Problem("is a folder, not a file", code="unreadable-file")
        with open(path, "rb", opener=None if piped else open_now) as stream:
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


def _report_not_utf8(data: bytes, offset: int) -> Problem:
    line = data.count(b"\n", 0, offset) + 1
    start = data.rfind(b"\n", 0, offset) + 1
    column = len(data[start:offset].decode("utf-8", "replace")) + 1
    return Problem("not UTF-8 text", line=line, column=column, hint="save the file as UTF-8", code="not-utf8")


_WORKSPACE = PurePosixPath("/workspace")
_HOME = PurePosixPath("/home/agent")
_TAKEN = ("agent", "bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "nix", "opt", "proc", "run", "sbin", "sys",
          "tmp", "usr", "var", "workspace")  # fmt: skip
"""Top-level folders that every sandbox uses."""


def to_workspace_path(path: str) -> str:
    """Return the path relative to the workspace; it may also be written as programs in the sandbox see it."""
    pure = PurePosixPath(path)
    return str(pure.relative_to(_WORKSPACE)) if pure.is_relative_to(_WORKSPACE) else path


def can_be_workdir(path: str) -> bool:
    """Return whether a sandbox can mount the workspace at that path too."""
    pure = PurePosixPath(path)
    top = pure.parts[1:2]
    if not pure.is_absolute() or ".." in pure.parts or not top or top[0] in _TAKEN:
        return False
    return not pure.is_relative_to(_HOME) and not _HOME.is_relative_to(pure)


def find_path_problem(path: str, folder: str = "the workspace") -> Iterable[tuple[str, str]]:
    """Yield the problem of a path that leaves the workspace or another folder; nothing for a valid path."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        yield "path", f"must stay inside {folder}: no .. and no absolute path"


def is_covered(allowed: Iterable[str], path: str) -> bool:
    """Return whether an entry of `allowed` is the path, a folder above it or a glob that matches it."""
    pure = PurePosixPath(path)
    return any(pure.is_relative_to(PurePosixPath(pattern)) or fnmatchcase(path, pattern) for pattern in allowed)
