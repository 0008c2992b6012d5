"""Decides which file faults an agent hits, from each call before it is made. Standard library only.

The outcome of a call is derived from the files as they are at that moment. A call that fails for another reason, or
succeeds, is not counted as a hit.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.processes.leftovers import OWN_COMMAND
from holdfast.world.sandbox import kernel
from holdfast.world.sandbox.stopped_calls import AT_CWD, FileUse, list_uses, list_write_calls, read_string
from holdfast.world.supervisors.messages import HOME, WORKSPACE, WatchOrder

_PAGE = 4096
_VECTORS = 1024
"""Maximum number of buffers of one call."""
_POSITION = 2**64 - 1
"""The offset argument of a call that writes at the file's current position."""
_PIECE = struct.Struct("=QQ")
ON_DISK = (f"{WORKSPACE}/".encode(), f"{HOME}/".encode(), b"/tmp/", b"/dev/shm/")  # as programs see them
_LINKS = 8
"""Maximum number of dangling links to follow, one after the other."""
_LONGEST_PATH = 4096
_SEALED = (b"/usr/", b"/lib", b"/etc/", b"/proc/", b"/bin/", b"/sbin/")
"""Folders where an agent cannot create links: no path there leads into its workspace."""
_IN_ROOT = Callable[[int, bytes], int]
_ANY, _WRITE = 0o777, 0o222
_WORKSPACE_BYTES = os.fsencode(WORKSPACE)
_MARK = f"{OWN_COMMAND}=".encode()


class FileWatch:
    """The faults that are watched until the agent hits them."""

    def __init__(self, own: bytes) -> None:
        """`own` is the program that starts all others; its own calls do not count."""
        self._own = _read_identity(own)
        self._namespace = os.stat("/proc/self/ns/pid").st_ino
        self.watches: list[WatchOrder] = []
        self._writes = list_write_calls()

    def find_hits(self, pid: int, call: int, arguments: Sequence[int]) -> list[int]:
        """Return the numbers of the faults that this call hits for the first time."""
        if not self.watches:
            return []
        try:
            hits = self._find_hits(pid, call, arguments)
            if not hits or not self._is_agent_process(pid):
                return []
        except (OSError, ValueError, OverflowError):  # the caller is gone, or the pointer is invalid
            return []
        self.watches = [watch for watch in self.watches if watch not in hits]
        return [watch.number for watch in hits]

    def _find_hits(self, pid: int, call: int, arguments: Sequence[int]) -> list[WatchOrder]:
        if call in self._writes:
            full = [watch for watch in self.watches if watch.kind == "full"]
            return full if full and is_out_of_room(pid, self._writes[call], arguments) else []
        # The caller is stopped, so the files are as the call will find them. Whether it fails is derived from that, and
        # not observed: the filter runs before the call and cannot see its result.
        hits: list[WatchOrder] = []
        for use in list_uses(call, arguments):
            view = InsideView(pid)
            try:
                target = view.find_target(use)
                if target is not None:
                    hits += [
                        watch for watch in self.watches if watch not in hits and is_blocked(watch, use, target, view)
                    ]
            finally:
                view.close()
        return hits

    def _is_agent_process(self, pid: int) -> bool:
        """Return whether it is a process of the agent, not the supervisor, bubblewrap or Holdfast's command."""
        if os.stat(f"/proc/{pid}/ns/pid").st_ino == self._namespace or _read_identity(f"/proc/{pid}/exe") == self._own:
            return False
        with open(f"/proc/{pid}/environ", "rb") as file:
            return not any(variable.startswith(_MARK) for variable in file.read().split(b"\0"))


def is_blocked(watch: WatchOrder, use: FileUse, target: bytes, view: InsideView) -> bool:
    """Return whether the fault makes this use of the target fail."""
    if watch.kind == "full":
        return _is_copy_blocked(watch, use, target, view)
    if not _is_within(watch.path, target):
        return False
    if watch.kind == "gone":
        return (use.exists or target != watch.path) and view.lstat(watch.path) is None
    if watch.kind == "denied":
        return (use.opens or target != watch.path) and _is_permission_missing(watch, watch.path, _ANY, view)
    return _is_write_blocked(watch, use, target, view)


def _is_write_blocked(watch: WatchOrder, use: FileUse, target: bytes, view: InsideView) -> bool:
    exists = view.lstat(target) is not None
    if exists and use.writes and _is_permission_missing(watch, target, _WRITE, view):
        return True
    folder = os.path.dirname(target)
    changes = use.removes if exists else use.makes
    return changes and _is_within(watch.path, folder) and _is_permission_missing(watch, folder, _WRITE, view)


def _is_permission_missing(watch: WatchOrder, path: bytes, bits: int, view: InsideView) -> bool:
    """Return whether all these permissions are missing there, and were not before the fault."""
    status = view.lstat(path)
    return (
        status is not None
        and not stat.S_ISLNK(status.st_mode)
        and not status.st_mode & bits
        and path not in watch.spared
    )


def _is_copy_blocked(watch: WatchOrder, use: FileUse, target: bytes, view: InsideView) -> bool:
    """Return whether opening an original file for writing fails because the disk has no room for its copy."""
    if not use.keeps or not _is_within(_WORKSPACE_BYTES, target):
        return False
    status = view.lstat(target)
    if status is None or not stat.S_ISREG(status.st_mode) or not status.st_size:
        return False
    copied = os.path.lexists(os.fsencode(watch.upper) + target.removeprefix(_WORKSPACE_BYTES))
    return not copied and -(-status.st_size // 4096) > count_free_pages(watch.upper)


def _is_within(path: bytes, target: bytes) -> bool:
    return target == path or target.startswith(path + b"/")


def _read_identity(path: str | bytes) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


class InsideView:
    """The file system as one stopped process sees it. Raises OSError if the process is gone. Close it after use."""

    def __init__(self, pid: int, open_in_root: _IN_ROOT = kernel.open_in_root) -> None:
        self._at = f"/proc/{pid}"
        self._open = open_in_root
        self._root = os.open(f"{self._at}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._root)

    def find_target(self, use: FileUse) -> bytes | None:
        """Return the path argument of a call with links resolved; None if it is not one of the agent's own files."""
        memory = os.open(f"{self._at}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            name = read_string(memory, use.name, _LONGEST_PATH)
        finally:
            os.close(memory)
        if not name or (name.startswith(_SEALED) and b".." not in name):
            return None
        start = b"" if name.startswith(b"/") else self._read_folder(use.folder)
        return self.resolve(start + b"/" + name, follows=use.follows)

    def resolve(self, path: bytes, *, follows: bool = True) -> bytes | None:
        """Return the real path: the existing part resolved, then the rest as written."""
        # The kernel resolves the longest part that exists, inside the caller's root and following links. What is left
        # begins at something that is missing, or at a link that leads to something missing. A call that creates a file
        # follows such a link too, so it is followed here, and the search starts again.
        for _ in range(_LINKS):
            existing, rest = self._find_existing(path, follows)
            resolved_path = b"/".join([existing.rstrip(b"/"), *rest])
            link = self._read_link(existing, rest) if len(rest) > 1 or (rest and follows) else None
            if link is None:
                return resolved_path
            path = b"/".join([b"" if link.startswith(b"/") else existing, link, *rest[1:]])
        return None

    def lstat(self, path: bytes) -> os.stat_result | None:
        """Return the status of a resolved path; None if it does not exist."""
        try:
            return os.lstat(os.fsencode(f"{self._at}/root") + path)
        except OSError:
            return None

    def _find_existing(self, path: bytes, follows: bool) -> tuple[bytes, list[bytes]]:
        """Return the longest existing part of a path, and the rest."""
        parts = [part for part in path.split(b"/") if part not in (b"", b".")]
        depth = len(parts) if follows or not parts or parts[-1] == b".." else len(parts) - 1
        while depth:
            try:
                fd = self._open(self._root, b"/".join(parts[:depth]))
            except OSError:
                depth -= 1
                continue
            try:
                return os.readlink(b"/proc/self/fd/%d" % fd), parts[depth:]
            finally:
                os.close(fd)
        return b"/", parts

    def _read_link(self, folder: bytes, rest: list[bytes]) -> bytes | None:
        """Return the target of a dangling link."""
        try:
            return os.readlink(os.fsencode(f"{self._at}/root") + folder + b"/" + rest[0])
        except OSError:
            return None

    def _read_folder(self, folder: int) -> bytes:
        name = "cwd" if folder == AT_CWD else f"fd/{folder}"
        return os.readlink(os.fsencode(f"{self._at}/{name}"))


class _Write(NamedTuple):
    fd: int
    size: int
    offset: int = _POSITION


def is_out_of_room(pid: int, name: str, arguments: Sequence[int]) -> bool:
    """Return whether a write needs more pages than are free. Raises OSError if that is unknown."""
    write = _parse_write(pid, name, arguments)
    at = f"/proc/{pid}/fd/{write.fd}"
    status = os.stat(at)
    if not stat.S_ISREG(status.st_mode) or not write.size or not os.readlink(os.fsencode(at)).startswith(ON_DISK):
        return False
    begin = _find_begin(pid, write, status.st_size)
    return count_needed_pages(status, begin, write.size) > count_free_pages(at)


def count_needed_pages(status: os.stat_result, begin: int, size: int) -> int:
    """Return how many pages a file needs for a write; pages in its holes are not counted."""
    # A file system in memory gives pages to a file as they are written. Pages that the file has already cost nothing.
    allocated = max(status.st_blocks * 512 // _PAGE, _count_pages(status.st_size), begin // _PAGE)
    return _count_pages(begin + size) - allocated


def count_free_pages(path: str) -> int:
    """Return how many pages are free on the file system of a file."""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize // _PAGE


def _count_pages(size: int) -> int:
    return -(-size // _PAGE)


def _parse_write(pid: int, name: str, arguments: Sequence[int]) -> _Write:
    fd = arguments[0] & 0xFFFFFFFF
    if name == "write":
        return _Write(fd, arguments[2])
    if name == "pwrite64":
        return _Write(fd, arguments[2], arguments[3])
    if name == "writev":
        return _Write(fd, _sum_sizes(pid, *arguments[1:3]))
    if name in ("pwritev", "pwritev2"):
        return _Write(fd, _sum_sizes(pid, *arguments[1:3]), arguments[3])
    if name == "fallocate":
        return _Write(fd, arguments[3] if arguments[1] & ~1 == 0 else 0, arguments[2])
    if name == "sendfile":
        return _Write(fd, _count_left(pid, arguments[1], arguments[3]))
    return _Write(arguments[2] & 0xFFFFFFFF, _count_left(pid, arguments[0], arguments[4]))  # copy_file_range


def _sum_sizes(pid: int, at: int, count: int) -> int:
    """Return the total size of all buffers."""
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        listed = os.pread(memory, _PIECE.size * min(count, _VECTORS), at)
    finally:
        os.close(memory)
    return sum(size for _, size in _PIECE.iter_unpack(listed))


def _count_left(pid: int, source: int, most: int) -> int:
    """Return the maximum number of bytes that a copy can take from a plain file, from its position on.

    Unknown for other sources.
    """
    fd = source & 0xFFFFFFFF
    status = os.stat(f"/proc/{pid}/fd/{fd}")
    position, _ = _read_state(pid, fd)
    return max(0, min(most, status.st_size - position)) if stat.S_ISREG(status.st_mode) else 0


def _find_begin(pid: int, write: _Write, size: int) -> int:
    position, flags = _read_state(pid, write.fd)
    if flags & os.O_APPEND:
        return size
    return position if write.offset == _POSITION else write.offset


def _read_state(pid: int, fd: int) -> tuple[int, int]:
    """Return the position and flags of a descriptor."""
    with open(f"/proc/{pid}/fdinfo/{fd}", "rb") as file:
        position, flags = file.read().split(b"\n", 2)[:2]
    return int(position.split()[1]), int(flags.split()[1], 8)
