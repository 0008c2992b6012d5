"""How a workspace differs from its snapshot, read from the upper layer of its overlay. Standard library only.

A folder is listed only if it is empty; otherwise the files in it are. A file that was copied up but not changed
(touched, or opened and not written) is not a change. Paths may have any length: the kernel takes 4,095 bytes at a time,
but a program may step deeper.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Literal, NamedTuple

_PATH_BYTES = 3_500
"""Maximum number of bytes of a path in one system call."""


def lstat(path: str) -> os.stat_result:
    with _walk_to(path) as (name, folder):
        return os.lstat(name, dir_fd=folder)


def listdir(path: str) -> list[str]:
    with _walk_to(path) as (name, folder):
        if folder is None:
            return os.listdir(name)
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
        try:
            return os.listdir(fd)
        finally:
            os.close(fd)


def readlink(path: str) -> str:
    with _walk_to(path) as (name, folder):
        return os.readlink(name, dir_fd=folder)


def open_file(path: str) -> BinaryIO:
    """Open a file for reading."""
    with _walk_to(path) as (name, folder):
        return os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder), "rb")


def read_attribute(path: str, name: str) -> bytes:
    """Return an extended attribute of a folder; raise OSError if it has none."""
    with _walk_to(path) as (last, folder):
        if folder is None:
            return os.getxattr(last, name, follow_symlinks=False)
        fd = os.open(last, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
        try:
            return os.getxattr(fd, name)
        finally:
            os.close(fd)


@contextmanager
def _walk_to(path: str) -> Iterator[tuple[str, int | None]]:
    """Open the folder that a long path ends in; yield the last part of the path and the descriptor.

    For a short path it yields the complete path and None.
    """
    path = path.rstrip("/") or "/"
    if len(os.fsencode(path)) < _PATH_BYTES:
        yield path, None
        return
    # Each step opens a folder relative to the one before, so no single call sees a path that is too long for the
    # kernel.
    fd: int | None = None
    try:
        for part in (parts := list(_split_path(path)))[:-1]:
            last, fd = fd, os.open(part, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
            if last is not None:
                os.close(last)
        yield parts[-1], fd
    finally:
        if fd is not None:
            os.close(fd)


def _split_path(path: str) -> Iterator[str]:
    """Split a path into parts that are each short enough for one system call; a name has at most 255 bytes."""
    piece, size = "/" if path.startswith("/") else "", 0
    for name in filter(None, path.split("/")):
        length = len(os.fsencode(name)) + 1
        if size + length > _PATH_BYTES:
            yield piece
            piece, size = "", 0
        piece += name if piece in ("", "/") else f"/{name}"
        size += length
    yield piece


_OPAQUE = ("user.overlay.opaque", "trusted.overlay.opaque")
_CHUNK = 1 << 18
DEPTH_LIMIT = 4_000
"""Maximum depth of folders that are walked; a deeper folder is listed itself instead of its contents."""


class Difference(NamedTuple):
    """One path that changed."""

    path: str
    op: Literal["created", "modified", "deleted"]
    bytes: int


def find_differences(upper: str, before: str) -> Iterator[Difference]:
    """Yield all differences, sorted by path."""
    yield from _compare_folder(upper, before, "", False)


def _compare_folder(upper: str, before: str, at: str, hidden: bool) -> Iterator[Difference]:
    """Yield the differences below one folder; `hidden` means that nothing of the lower layers is visible here."""
    # The upper layer holds only what was written. A folder that was removed and made again is marked opaque: then
    # nothing below it is visible any more, and whatever was there before and is not in the upper layer is deleted.
    names = {name: f"{upper}/{at}{name}" for name in _list_names(f"{upper}/{at}")}
    was = _list_names(f"{before}/{at}") if hidden else []
    for name in sorted({*names, *was}, key=lambda n: _make_sort_key(n, f"{upper}/{at}{n}", f"{before}/{at}{n}")):
        yield from _compare_entry(upper, before, f"{at}{name}", hidden)


def _compare_entry(upper: str, before: str, path: str, hidden: bool) -> Iterator[Difference]:
    now, was = _read_status(f"{upper}/{path}"), _read_status(f"{before}/{path}")
    # A whiteout, a character device 0:0 in the upper layer, hides a path of the lower layers: it was deleted.
    if now is None or _is_whiteout(now):
        yield from _list_tree(before, path, was, "deleted")
    elif not stat.S_ISDIR(now.st_mode):
        yield from _compare_file(upper, before, path, now, was)
    elif was is not None and stat.S_ISDIR(was.st_mode):
        yield from _compare_folder(upper, before, f"{path}/", hidden or _is_opaque(f"{upper}/{path}"))
    else:
        yield from _list_tree(before, path, was, "deleted")
        yield from _list_tree(upper, path, now, "created")


def _compare_file(
    upper: str, before: str, path: str, now: os.stat_result, was: os.stat_result | None
) -> Iterator[Difference]:
    if was is None:
        yield Difference(path, "created", now.st_size)
    elif stat.S_ISDIR(was.st_mode):
        yield Difference(path, "created", now.st_size)
        yield from _list_tree(before, path, was, "deleted")
    elif not _is_same(f"{upper}/{path}", f"{before}/{path}", now, was):
        yield Difference(path, "modified", now.st_size)


def _list_tree(
    root: str, path: str, status: os.stat_result | None, op: Literal["created", "deleted"]
) -> Iterator[Difference]:
    """Add a file, or all files below a folder."""
    if status is None:
        return
    if not stat.S_ISDIR(status.st_mode):
        if not _is_whiteout(status):
            yield Difference(path, op, status.st_size if op == "created" else 0)
        return
    deep = path.count("/") > DEPTH_LIMIT
    names = [] if deep else sorted(_list_names(f"{root}/{path}"), key=lambda n: _make_sort_key(n, f"{root}/{path}/{n}"))
    if not names:
        yield Difference(path, op, 0)
    for name in names:
        yield from _list_tree(root, f"{path}/{name}", _read_status(f"{root}/{path}/{name}"), op)


def _is_same(path: str, original: str, now: os.stat_result, was: os.stat_result) -> bool:
    if now.st_mode != was.st_mode or now.st_size != was.st_size:
        return False
    if stat.S_ISLNK(now.st_mode):
        return readlink(path) == readlink(original)
    return not stat.S_ISREG(now.st_mode) or _has_same_content(path, original)


def _has_same_content(path: str, original: str) -> bool:
    with open_file(path) as file, open_file(original) as original_file:
        while True:
            data, original_data = file.read(_CHUNK), original_file.read(_CHUNK)
            if data != original_data:
                return False
            if not data:
                return True


def _make_sort_key(name: str, *paths: str) -> str:
    """Return the sort key of a name: a folder sorts like its contents."""
    # In the order of complete paths `a-b` comes before `a/x`, because `-` sorts before `/`.
    folder = any(stat.S_ISDIR(status.st_mode) for path in paths if (status := _read_status(path)))
    return f"{name}/" if folder else name


def _list_names(folder: str) -> list[str]:
    try:
        return listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _read_status(path: str) -> os.stat_result | None:
    try:
        return lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_whiteout(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _is_opaque(folder: str) -> bool:
    for name in _OPAQUE:
        try:
            if read_attribute(folder, name) == b"y":
                return True
        except OSError:
            continue
    return False
