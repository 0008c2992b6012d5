"""Whether a write that another process is about to make finds room on its disk. Standard library only."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.world.holders.workspace import HOME, WORKSPACE

_PAGE = 4096
_VECTORS = 1024
"""Buffers that one call can have."""
_POSITION = 2**64 - 1
"""The offset of a call that writes where the file's position is."""
_PIECE = struct.Struct("=QQ")
ON_DISK = (f"{WORKSPACE}/".encode(), f"{HOME}/".encode(), b"/tmp/", b"/dev/shm/")  # as programs see them


class _Write(NamedTuple):
    fd: int
    size: int
    offset: int = _POSITION


def lacks_room(pid: int, name: str, arguments: Sequence[int]) -> bool:
    """Whether a call that writes needs more pages than are left. OSError if that cannot be told."""
    write = _write(pid, name, arguments)
    at = f"/proc/{pid}/fd/{write.fd}"
    seen = os.stat(at)
    if not stat.S_ISREG(seen.st_mode) or not write.size or not os.readlink(os.fsencode(at)).startswith(ON_DISK):
        return False
    begin = _begin(pid, write, seen.st_size)
    return needed_pages(seen, begin, write.size) > free_pages(at)


def needed_pages(seen: os.stat_result, begin: int, size: int) -> int:
    """How many a file has to be given for a write; those in its holes are not counted."""
    held = max(seen.st_blocks * 512 // _PAGE, _pages(seen.st_size), begin // _PAGE)
    return _pages(begin + size) - held


def free_pages(path: str) -> int:
    """How many are left on the disk of a file."""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize // _PAGE


def _pages(size: int) -> int:
    return -(-size // _PAGE)


def _write(pid: int, name: str, arguments: Sequence[int]) -> _Write:
    fd = arguments[0] & 0xFFFFFFFF
    if name == "write":
        return _Write(fd, arguments[2])
    if name == "pwrite64":
        return _Write(fd, arguments[2], arguments[3])
    if name == "writev":
        return _Write(fd, _summed(pid, *arguments[1:3]))
    if name in ("pwritev", "pwritev2"):
        return _Write(fd, _summed(pid, *arguments[1:3]), arguments[3])
    if name == "fallocate":
        return _Write(fd, arguments[3] if arguments[1] & ~1 == 0 else 0, arguments[2])
    if name == "sendfile":
        return _Write(fd, _left(pid, arguments[1], arguments[3]))
    return _Write(arguments[2] & 0xFFFFFFFF, _left(pid, arguments[0], arguments[4]))  # copy_file_range


def _summed(pid: int, at: int, count: int) -> int:
    """The bytes of all buffers."""
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        listed = os.pread(memory, _PIECE.size * min(count, _VECTORS), at)
    finally:
        os.close(memory)
    return sum(size for _, size in _PIECE.iter_unpack(listed))


def _left(pid: int, source: int, most: int) -> int:
    """What a copy can take at most of a plain file, from its position on; nothing is known of other sources."""
    fd = source & 0xFFFFFFFF
    seen = os.stat(f"/proc/{pid}/fd/{fd}")
    position, _ = _state(pid, fd)
    return max(0, min(most, seen.st_size - position)) if stat.S_ISREG(seen.st_mode) else 0


def _begin(pid: int, write: _Write, size: int) -> int:
    position, flags = _state(pid, write.fd)
    if flags & os.O_APPEND:
        return size
    return position if write.offset == _POSITION else write.offset


def _state(pid: int, fd: int) -> tuple[int, int]:
    """The position and the flags of a descriptor."""
    with open(f"/proc/{pid}/fdinfo/{fd}", "rb") as told:
        position, flags = told.read().split(b"\n", 2)[:2]
    return int(position.split()[1]), int(flags.split()[1], 8)
