"""A folder as it was and as it is: how the process backend sees changes, and how it copies."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from holdfast.protocols.sandbox import FileChange
from holdfast.world.sandbox import long_paths

_CHUNK = 1 << 18


class TreeEntry(NamedTuple):
    """One file, link or empty folder."""

    path: str
    mode: int
    size: int
    digest: bytes


def entries(root: str) -> Iterator[TreeEntry]:
    """All of a folder, sorted by path; no link is followed. Folders count only where they are empty."""
    waiting = [*_listed(root, "")]
    while waiting:
        path = waiting.pop()
        found = long_paths.lstat(f"{root}/{path}")
        if not stat.S_ISDIR(found.st_mode):
            yield TreeEntry(path, found.st_mode, found.st_size, _digest(f"{root}/{path}", found.st_mode))
            continue
        below = [*_listed(root, f"{path}/")]
        waiting += below
        if not below:
            yield TreeEntry(path, found.st_mode, 0, b"")


def compared(before: Iterator[TreeEntry], now: Iterator[TreeEntry]) -> Iterator[FileChange]:
    """How two sorted lists differ."""
    was, found = next(before, None), next(now, None)
    while was is not None or found is not None:
        if found is None or (was is not None and was.path < found.path):
            assert was is not None
            yield FileChange(_shown(was.path), "deleted")
            was = next(before, None)
        elif was is None or found.path < was.path:
            yield FileChange(_shown(found.path), "created", found.size)
            found = next(now, None)
        else:
            if was != found:
                yield FileChange(_shown(found.path), "modified", found.size)
            was, found = next(before, None), next(now, None)


def copy(source: Path, target: Path) -> None:
    """Files, folders and links, over what is there; what is none of these is left out."""
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, ignore=_odd, copy_function=_copy_file)


def _listed(root: str, at: str) -> Iterator[str]:
    """Last first; a folder sorts as what lies in it."""
    try:
        names = long_paths.listdir(f"{root}/{at}")
    except (PermissionError, FileNotFoundError):
        return
    modes = {name: long_paths.lstat(f"{root}/{at}{name}").st_mode for name in names}
    keys = [(f"{name}/" if stat.S_ISDIR(mode) else name, name) for name, mode in modes.items()]
    yield from (f"{at}{name}" for _, name in sorted(keys, reverse=True))


def _digest(path: str, mode: int) -> bytes:
    if stat.S_ISLNK(mode):
        return os.fsencode(long_paths.readlink(path))
    if not stat.S_ISREG(mode):
        return b""
    digest = hashlib.blake2b(digest_size=16)
    try:
        with long_paths.open_file(path) as file:
            while data := file.read(_CHUNK):
                digest.update(data)
    except PermissionError:
        return b"unreadable"
    return digest.digest()


def _odd(folder: str, names: list[str]) -> set[str]:
    modes = {name: os.lstat(os.path.join(folder, name)).st_mode for name in names}
    return {n for n, m in modes.items() if not (stat.S_ISREG(m) or stat.S_ISDIR(m) or stat.S_ISLNK(m))}


def _copy_file(source: str, target: str) -> None:
    """A file that is there is replaced, not written through: it may be a link."""
    if os.path.lexists(target):
        os.unlink(target)
    shutil.copy2(source, target, follow_symlinks=False)


def _shown(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")
