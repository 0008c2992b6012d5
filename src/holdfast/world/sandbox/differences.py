"""How a workspace differs from its snapshot, read from the upper layer of its overlay. Standard library only.

Folders are told of only where they are empty: else what is in them speaks for them. A file that was copied up and
is as it was (touched, or opened and not written to) is no change.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Literal, NamedTuple

from holdfast.world.sandbox import long_paths

_OPAQUE = ("user.overlay.opaque", "trusted.overlay.opaque")
_CHUNK = 1 << 18
DEEPEST = 4_000
"""Folders below each other that are walked through; one further down stands for what is in it."""


class Difference(NamedTuple):
    """One path that is not as it was."""

    path: str
    op: Literal["created", "modified", "deleted"]
    bytes: int


def differences(upper: str, before: str) -> Iterator[Difference]:
    """All of them, sorted by path."""
    yield from _within(upper, before, "", False)


def _within(upper: str, before: str, at: str, hidden: bool) -> Iterator[Difference]:
    """`hidden`: what was there before does not shine through."""
    names = {name: f"{upper}/{at}{name}" for name in _names(f"{upper}/{at}")}
    was = _names(f"{before}/{at}") if hidden else []
    for name in sorted({*names, *was}, key=lambda n: _key(n, f"{upper}/{at}{n}", f"{before}/{at}{n}")):
        yield from _one(upper, before, f"{at}{name}", hidden)


def _one(upper: str, before: str, path: str, hidden: bool) -> Iterator[Difference]:
    now, was = _stat(f"{upper}/{path}"), _stat(f"{before}/{path}")
    if now is None or _whiteout(now):
        yield from _all(before, path, was, "deleted")
    elif not stat.S_ISDIR(now.st_mode):
        yield from _file(upper, before, path, now, was)
    elif was is not None and stat.S_ISDIR(was.st_mode):
        yield from _within(upper, before, f"{path}/", hidden or _opaque(f"{upper}/{path}"))
    else:
        yield from _all(before, path, was, "deleted")
        yield from _all(upper, path, now, "created")


def _file(upper: str, before: str, path: str, now: os.stat_result, was: os.stat_result | None) -> Iterator[Difference]:
    if was is None:
        yield Difference(path, "created", now.st_size)
    elif stat.S_ISDIR(was.st_mode):
        yield Difference(path, "created", now.st_size)
        yield from _all(before, path, was, "deleted")
    elif not _same(f"{upper}/{path}", f"{before}/{path}", now, was):
        yield Difference(path, "modified", now.st_size)


def _all(root: str, path: str, found: os.stat_result | None, op: Literal["created", "deleted"]) -> Iterator[Difference]:
    """A file, or all files below a folder."""
    if found is None:
        return
    if not stat.S_ISDIR(found.st_mode):
        if not _whiteout(found):
            yield Difference(path, op, found.st_size if op == "created" else 0)
        return
    deep = path.count("/") > DEEPEST
    names = [] if deep else sorted(_names(f"{root}/{path}"), key=lambda n: _key(n, f"{root}/{path}/{n}"))
    if not names:
        yield Difference(path, op, 0)
    for name in names:
        yield from _all(root, f"{path}/{name}", _stat(f"{root}/{path}/{name}"), op)


def _same(here: str, there: str, now: os.stat_result, was: os.stat_result) -> bool:
    if now.st_mode != was.st_mode or now.st_size != was.st_size:
        return False
    if stat.S_ISLNK(now.st_mode):
        return long_paths.readlink(here) == long_paths.readlink(there)
    return not stat.S_ISREG(now.st_mode) or _same_content(here, there)


def _same_content(here: str, there: str) -> bool:
    with long_paths.open_file(here) as one, long_paths.open_file(there) as other:
        while True:
            mine, theirs = one.read(_CHUNK), other.read(_CHUNK)
            if mine != theirs:
                return False
            if not mine:
                return True


def _key(name: str, *paths: str) -> str:
    """A folder sorts as its contents do."""
    folder = any(stat.S_ISDIR(found.st_mode) for path in paths if (found := _stat(path)))
    return f"{name}/" if folder else name


def _names(folder: str) -> list[str]:
    try:
        return long_paths.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _stat(path: str) -> os.stat_result | None:
    try:
        return long_paths.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _whiteout(found: os.stat_result) -> bool:
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0


def _opaque(folder: str) -> bool:
    for name in _OPAQUE:
        try:
            if long_paths.attribute(folder, name) == b"y":
                return True
        except OSError:
            continue
    return False
