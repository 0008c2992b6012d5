"""Files by paths of any length: a kernel takes 4,095 bytes at a time, but a program may step deeper.

Standard library only. Whoever calls this has walked there: no part of a path is a link, and nothing changes meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

_AT_ONCE = 3_500
"""Bytes of a path that one system call is given."""


def lstat(path: str) -> os.stat_result:
    with _reached(path) as (name, folder):
        return os.lstat(name, dir_fd=folder)


def listdir(path: str) -> list[str]:
    with _reached(path) as (name, folder):
        if folder is None:
            return os.listdir(name)
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
        try:
            return os.listdir(fd)
        finally:
            os.close(fd)


def readlink(path: str) -> str:
    with _reached(path) as (name, folder):
        return os.readlink(name, dir_fd=folder)


def open_file(path: str) -> BinaryIO:
    """To be read."""
    with _reached(path) as (name, folder):
        return os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder), "rb")


def attribute(path: str, name: str) -> bytes:
    """An extended attribute of a folder; OSError if it has none."""
    with _reached(path) as (last, folder):
        if folder is None:
            return os.getxattr(last, name, follow_symlinks=False)
        fd = os.open(last, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
        try:
            return os.getxattr(fd, name)
        finally:
            os.close(fd)


@contextmanager
def _reached(path: str) -> Iterator[tuple[str, int | None]]:
    """The end of a path, and the folder that it begins in; None: the whole path."""
    path = path.rstrip("/") or "/"
    if len(os.fsencode(path)) < _AT_ONCE:
        yield path, None
        return
    fd: int | None = None
    try:
        for part in (parts := list(_parts(path)))[:-1]:
            last, fd = fd, os.open(part, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
            if last is not None:
                os.close(last)
        yield parts[-1], fd
    finally:
        if fd is not None:
            os.close(fd)


def _parts(path: str) -> Iterator[str]:
    """Pieces of a path that are each short enough; a name has at most 255 bytes."""
    piece, size = "/" if path.startswith("/") else "", 0
    for name in filter(None, path.split("/")):
        length = len(os.fsencode(name)) + 1
        if size + length > _AT_ONCE:
            yield piece
            piece, size = "", 0
        piece += name if piece in ("", "/") else f"/{name}"
        size += length
    yield piece
