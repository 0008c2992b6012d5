"""How a workspace differs from its snapshot, read from the upper layer of its overlay. Standard library only.

A folder is listed only if it is empty; otherwise the files in it are. A file that was copied up but not changed
(touched, or opened and not written) is not a change. A folder whose path is too long for a system call, because a
program stepped deeper, is listed itself instead of its contents.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO, Literal, NamedTuple

PATH_LIMIT = 3_500
"""Maximum number of bytes of a folder's path whose contents are listed; the kernel takes 4,095 bytes at a time."""
_OPAQUE = ("user.overlay.opaque", "trusted.overlay.opaque")
_CHUNK = 1 << 18


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
        if is_too_long(f"{upper}/{path}"):
            yield Difference(path, "modified", 0)
        else:
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
    names = [] if is_too_long(f"{root}/{path}") else _list_names(f"{root}/{path}")
    if not names:
        yield Difference(path, op, 0)
    for name in sorted(names, key=lambda n: _make_sort_key(n, f"{root}/{path}/{n}")):
        yield from _list_tree(root, f"{path}/{name}", _read_status(f"{root}/{path}/{name}"), op)


def _is_same(path: str, original: str, now: os.stat_result, was: os.stat_result) -> bool:
    if now.st_mode != was.st_mode or now.st_size != was.st_size:
        return False
    if stat.S_ISLNK(now.st_mode):
        return os.readlink(path) == os.readlink(original)
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


def is_too_long(folder: str) -> bool:
    """Return whether the contents of a folder are not listed."""
    return len(os.fsencode(folder)) > PATH_LIMIT


def open_file(path: str) -> BinaryIO:
    """Open a file for reading, without following a link."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")


def _list_names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _read_status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_whiteout(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _is_opaque(folder: str) -> bool:
    for name in _OPAQUE:
        with suppress(OSError):  # it has no such attribute
            if os.getxattr(folder, name, follow_symlinks=False) == b"y":
                return True
    return False
