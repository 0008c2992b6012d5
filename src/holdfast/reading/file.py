"""A file that the user wrote, as text: read within limits, and told why where it cannot be."""

from __future__ import annotations

import os
from pathlib import Path
from stat import S_ISREG

from msgspec import Struct

from holdfast.model.spec import Problem

MAX_BYTES = 10_000_000


class Source(Struct, frozen=True):
    """What stands in a file; `problem` is why it cannot be used, if it cannot."""

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
