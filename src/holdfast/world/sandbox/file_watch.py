"""Which faults of its files an agent runs into: told from each call before it is made. Standard library only.

What a call comes to is derived from what is there at that moment, so nothing counts that would have succeeded.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.processes.own_command import OWN_COMMAND
from holdfast.world.holders.wire import WatchOrder
from holdfast.world.holders.workspace import WORKSPACE
from holdfast.world.sandbox.disk_writes import free_pages, lacks_room
from holdfast.world.sandbox.file_calls import FileUse, uses, write_calls
from holdfast.world.sandbox.inside_view import InsideView

_ANY, _WRITE = 0o777, 0o222
_TOP = os.fsencode(WORKSPACE)
_MARK = f"{OWN_COMMAND}=".encode()


@dataclass(frozen=True)
class WatchedFault:
    """A fault that the agent has not run into yet."""

    number: int
    kind: str
    path: bytes
    spared: frozenset[bytes]
    upper: str

    @classmethod
    def of(cls, number: int, order: WatchOrder, upper: str = "") -> WatchedFault:
        """`upper` is where files are that are no longer as they were laid out."""
        return cls(number, order.kind, _inside(order.path), frozenset(map(_inside, order.spared)), upper)


class FileWatch:
    """The faults that are watched, until the agent has run into them."""

    def __init__(self, own: bytes) -> None:
        """`own` is the program that starts all others: what it touches counts for nothing."""
        self._own = _identity(own)
        self._namespace = os.stat("/proc/self/ns/pid").st_ino
        self._watches: list[WatchedFault] = []
        self._writes = write_calls()

    def add(self, number: int, order: WatchOrder, upper: str) -> None:
        """Watches for a fault."""
        self._watches.append(WatchedFault.of(number, order, upper))

    def hits(self, pid: int, call: int, arguments: Sequence[int]) -> list[int]:
        """The faults that this call runs into for the first time, by their numbers."""
        if not self._watches:
            return []
        try:
            found = self._met(pid, call, arguments)
            if not found or not self._of_agent(pid):
                return []
        except (OSError, ValueError, OverflowError):  # it is gone, or points nowhere
            return []
        self._watches = [one for one in self._watches if one not in found]
        return [one.number for one in found]

    def _met(self, pid: int, call: int, arguments: Sequence[int]) -> list[WatchedFault]:
        if call in self._writes:
            full = [one for one in self._watches if one.kind == "full"]
            return full if full and lacks_room(pid, self._writes[call], arguments) else []
        found: list[WatchedFault] = []
        for use in uses(call, arguments):
            view = InsideView(pid)
            try:
                target = view.target(use)
                if target is not None:
                    found += [one for one in self._watches if one not in found and fails(one, use, target, view)]
            finally:
                view.close()
        return found

    def _of_agent(self, pid: int) -> bool:
        """Not the holder's doing, nor bubblewrap's, nor that of a command of ours."""
        if os.stat(f"/proc/{pid}/ns/pid").st_ino == self._namespace or _identity(f"/proc/{pid}/exe") == self._own:
            return False
        with open(f"/proc/{pid}/environ", "rb") as told:
            return not any(variable.startswith(_MARK) for variable in told.read().split(b"\0"))


def fails(watch: WatchedFault, use: FileUse, target: bytes, view: InsideView) -> bool:
    """Whether what is needed of the target cannot be had because of the fault."""
    if watch.kind == "full":
        return _no_copy(watch, use, target, view)
    if not _covers(watch.path, target):
        return False
    if watch.kind == "gone":
        return (use.exists or target != watch.path) and view.lstat(watch.path) is None
    if watch.kind == "denied":
        return (use.opens or target != watch.path) and _lacks(watch, watch.path, _ANY, view)
    return _unwritable(watch, use, target, view)


def _unwritable(watch: WatchedFault, use: FileUse, target: bytes, view: InsideView) -> bool:
    there = view.lstat(target) is not None
    if there and use.writes and _lacks(watch, target, _WRITE, view):
        return True
    folder = os.path.dirname(target)
    changes = use.removes if there else use.makes
    return changes and _covers(watch.path, folder) and _lacks(watch, folder, _WRITE, view)


def _lacks(watch: WatchedFault, path: bytes, bits: int, view: InsideView) -> bool:
    """Whether all these permissions are missing there, and were not before the fault."""
    seen = view.lstat(path)
    return seen is not None and not stat.S_ISLNK(seen.st_mode) and not seen.st_mode & bits and path not in watch.spared


def _no_copy(watch: WatchedFault, use: FileUse, target: bytes, view: InsideView) -> bool:
    """A file as it was laid out is copied to the disk when it is opened for writing."""
    if not use.keeps or not _covers(_TOP, target):
        return False
    seen = view.lstat(target)
    if seen is None or not stat.S_ISREG(seen.st_mode) or not seen.st_size:
        return False
    copied = os.path.lexists(os.fsencode(watch.upper) + target.removeprefix(_TOP))
    return not copied and -(-seen.st_size // 4096) > free_pages(watch.upper)


def _covers(path: bytes, target: bytes) -> bool:
    return target == path or target.startswith(path + b"/")


def _inside(path: str) -> bytes:
    return os.path.normpath(_TOP + b"/" + os.fsencode(path))


def _identity(path: str | bytes) -> tuple[int, int]:
    seen = os.stat(path)
    return seen.st_dev, seen.st_ino
