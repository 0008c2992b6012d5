"""The system calls of a stopped process: what it is about to execute, and what its calls on files need to succeed.

Standard library only.
"""

from __future__ import annotations

import json
import os
import platform
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

AT_CWD = 0xFFFFFF9C
"""The folder argument of a call that uses the working folder."""
_ARGUMENTS, _ARGUMENT_BYTES, _TOTAL_BYTES = 256, 4096, 16_000
"""Limits on what is stored of one command line."""
_PAGE = 4096
_AUXILIARY = struct.Struct("=QQ")
_AT_RANDOM, _RANDOM_BYTES = 25, 16
"""The entry of the auxiliary vector that points to the random bytes the kernel gives each executed program."""


class ExecImage(NamedTuple):
    """Identifies the program that a process executes: it changes with every exec, even of the same program."""

    auxiliary: bytes
    random: bytes


class ExecAttempt(NamedTuple):
    """An exec that is about to happen."""

    record: bytes
    """The command's argv, folder and time, as JSON."""
    image: ExecImage
    """The image that it will replace."""


def read_attempt(pid: int, folder: int, path: int, argv: int, own: bytes) -> ExecAttempt | None:
    """Read the attempt; None if it is `own` or the file does not exist.

    Raises OSError if the process is gone or a pointer is invalid.
    """
    at = time.time()
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        name = read_string(memory, path, _PAGE)
        if name == own or not _has_file(pid, folder & 0xFFFFFFFF, name):
            return None
        words = _read_words(memory, argv) or [name]
        auxiliary = _read_auxiliary(pid)
        image = ExecImage(auxiliary, _read_random(memory, auxiliary))
    finally:
        os.close(memory)
    cwd = os.readlink(f"/proc/{pid}/cwd")
    arguments = [word.decode("utf-8", "backslashreplace") for word in words]
    return ExecAttempt(json.dumps({"argv": arguments, "cwd": cwd, "ts": at}).encode(), image)


def is_executing(pid: int, image: ExecImage) -> bool:
    """Return whether a process, which is stopped, still has that image."""
    try:
        auxiliary = _read_auxiliary(pid)
        # This suffices nearly always: the kernel loads each program at another address.
        if auxiliary != image.auxiliary:
            return False
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _read_random(memory, auxiliary) == image.random
        finally:
            os.close(memory)
    except (OSError, OverflowError):  # it was readable before
        return False


def find_leader(pid: int) -> int:
    """Return the process that a thread belongs to; raise OSError if it is gone."""
    with open(f"/proc/{pid}/status", "rb") as status:
        return next(int(line[5:]) for line in status if line.startswith(b"Tgid:"))


def _read_auxiliary(pid: int) -> bytes:
    fd = os.open(f"/proc/{pid}/auxv", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _PAGE)
    finally:
        os.close(fd)


def _read_random(memory: int, auxiliary: bytes) -> bytes:
    # The kernel hands each program a list of pairs. One of them points to 16 random bytes that are new for every exec.
    complete = auxiliary[: len(auxiliary) // _AUXILIARY.size * _AUXILIARY.size]
    at = next((value for key, value in _AUXILIARY.iter_unpack(complete) if key == _AT_RANDOM), 0)
    return os.pread(memory, _RANDOM_BYTES, at) if at else b""


def _has_file(pid: int, folder: int, name: bytes) -> bool:
    """Return whether a file of that name exists; a link counts, because it cannot be followed from here."""
    if not name:
        return True  # by descriptor
    if name.startswith(b"/"):
        base = f"/proc/{pid}/root"
    else:
        base = f"/proc/{pid}/cwd/" if folder == AT_CWD else f"/proc/{pid}/fd/{folder}/"
    return os.path.lexists(os.fsencode(base) + name)


def _read_words(memory: int, at: int) -> list[bytes]:
    words: list[bytes] = []
    remaining = _TOTAL_BYTES
    for n in range(_ARGUMENTS):
        pointer = int.from_bytes(os.pread(memory, 8, at + 8 * n), "little") if at else 0
        if not pointer or remaining <= 0:
            return words
        words.append(read_string(memory, pointer, min(remaining, _ARGUMENT_BYTES)))
        remaining -= len(words[-1])
    return [*words, "…".encode()]


def read_string(memory: int, at: int, limit: int) -> bytes:
    """Read a string of another process page by page, because the next page may not exist."""
    text = bytearray()
    while len(text) < limit:
        piece = os.pread(memory, min(_PAGE - at % _PAGE, limit - len(text)), at)
        end = piece.find(b"\0")
        if end >= 0 or not piece:
            return bytes(text + piece[: max(end, 0)])
        text += piece
        at += len(piece)
    return bytes(text)


_ABSENT = -1
"""Replaces an argument's index where the call has no such argument."""
_PATH_ONLY: int = getattr(os, "O_PATH", 0x200000)
_NOFOLLOW_AT = 0x100


class FileUse(NamedTuple):
    """A path argument of a call, and what the call needs at that path."""

    folder: int
    """The descriptor that the path is relative to."""
    name: int
    """The address of the path in the caller's memory."""
    exists: bool = False
    opens: bool = False
    """An existing file must be accessible."""
    writes: bool = False
    makes: bool = False
    """If nothing is there, the folder must be writable."""
    removes: bool = False
    """If something is there, the folder must be writable."""
    follows: bool = True
    """A link at the end of the path is followed."""
    keeps: bool = False
    """Opening it for writing keeps its content."""


class _PathForm(NamedTuple):
    """The arguments of a call that hold its path; `more` is the index of its flags or mode."""

    kind: str
    folder: int
    name: int
    more: int = _ABSENT


class _PathCall(NamedTuple):
    numbers: tuple[int | None, int | None]
    """Its numbers on x86_64 and aarch64."""
    paths: tuple[_PathForm, ...]


_CALLS: Mapping[str, _PathCall] = {
    "open": _PathCall((2, None), (_PathForm("open", _ABSENT, 0, 1),)),
    "creat": _PathCall((85, None), (_PathForm("creat", _ABSENT, 0),)),
    "openat": _PathCall((257, 56), (_PathForm("open", 0, 1, 2),)),
    "stat": _PathCall((4, None), (_PathForm("look", _ABSENT, 0),)),
    "lstat": _PathCall((6, None), (_PathForm("look itself", _ABSENT, 0),)),
    "newfstatat": _PathCall((262, 79), (_PathForm("look at", 0, 1, 3),)),
    "statx": _PathCall((332, 291), (_PathForm("look at", 0, 1, 2),)),
    "access": _PathCall((21, None), (_PathForm("access", _ABSENT, 0, 1),)),
    "faccessat": _PathCall((269, 48), (_PathForm("access", 0, 1, 2),)),
    "faccessat2": _PathCall((439, 439), (_PathForm("access", 0, 1, 2),)),
    "readlink": _PathCall((89, None), (_PathForm("look itself", _ABSENT, 0),)),
    "readlinkat": _PathCall((267, 78), (_PathForm("look itself", 0, 1),)),
    "chdir": _PathCall((80, 49), (_PathForm("enter", _ABSENT, 0),)),
    "truncate": _PathCall((76, 45), (_PathForm("cut", _ABSENT, 0),)),
    "chmod": _PathCall((90, None), (_PathForm("look", _ABSENT, 0),)),
    "fchmodat": _PathCall((268, 53), (_PathForm("look", 0, 1),)),
    "utimensat": _PathCall((280, 88), (_PathForm("look at", 0, 1, 3),)),
    "execve": _PathCall((59, 221), (_PathForm("enter", _ABSENT, 0),)),
    "execveat": _PathCall((322, 281), (_PathForm("enter", 0, 1),)),
    "unlink": _PathCall((87, None), (_PathForm("remove", _ABSENT, 0),)),
    "unlinkat": _PathCall((263, 35), (_PathForm("remove", 0, 1),)),
    "rmdir": _PathCall((84, None), (_PathForm("remove", _ABSENT, 0),)),
    "mkdir": _PathCall((83, None), (_PathForm("make", _ABSENT, 0),)),
    "mkdirat": _PathCall((258, 34), (_PathForm("make", 0, 1),)),
    "mknod": _PathCall((133, None), (_PathForm("make", _ABSENT, 0),)),
    "mknodat": _PathCall((259, 33), (_PathForm("make", 0, 1),)),
    "symlink": _PathCall((88, None), (_PathForm("make", _ABSENT, 1),)),
    "symlinkat": _PathCall((266, 36), (_PathForm("make", 1, 2),)),
    "link": _PathCall((86, None), (_PathForm("look itself", _ABSENT, 0), _PathForm("make", _ABSENT, 1))),
    "linkat": _PathCall((265, 37), (_PathForm("look itself", 0, 1), _PathForm("make", 2, 3))),
    "rename": _PathCall((82, None), (_PathForm("remove", _ABSENT, 0), _PathForm("make", _ABSENT, 1))),
    "renameat": _PathCall((264, 38), (_PathForm("remove", 0, 1), _PathForm("make", 2, 3))),
    "renameat2": _PathCall((316, 276), (_PathForm("remove", 0, 1), _PathForm("make", 2, 3))),
}
"""The calls that C libraries make; `openat2` is not among them."""
_OPENING = ("open", "creat", "openat")
_WRITES: Mapping[str, tuple[int, int]] = {
    "write": (1, 64),
    "pwrite64": (18, 68),
    "writev": (20, 66),
    "pwritev": (296, 70),
    "pwritev2": (328, 287),
    "fallocate": (285, 47),
    "sendfile": (40, 71),
    "copy_file_range": (326, 285),
}
_FIXED: Mapping[str, FileUse] = {
    "look": FileUse(0, 0, exists=True),
    "look itself": FileUse(0, 0, exists=True, follows=False),
    "enter": FileUse(0, 0, exists=True, opens=True),
    "cut": FileUse(0, 0, exists=True, opens=True, writes=True),
    "make": FileUse(0, 0, makes=True, follows=False),
    "remove": FileUse(0, 0, exists=True, removes=True, follows=False),
    "creat": FileUse(0, 0, opens=True, writes=True, makes=True),
}


@cache
def list_path_calls(machine: str = "") -> Mapping[int, tuple[_PathForm, ...]]:
    """Return the paths of every call that has one, by the call's number on this machine."""
    at = _get_column(machine)
    return {number: call.paths for call in _CALLS.values() if (number := call.numbers[at]) is not None}


@cache
def list_write_calls(machine: str = "") -> Mapping[int, str]:
    """Return the names of the calls that write to a descriptor, by number."""
    at = _get_column(machine)
    return {numbers[at]: name for name, numbers in _WRITES.items()}


def list_reported_calls(watched: Sequence[str], machine: str = "") -> frozenset[int]:
    """Return the numbers of the calls that must be reported, for faults of `paths` or of the `disk`."""
    at = _get_column(machine)
    numbers = set(list_path_calls(machine)) if "paths" in watched else set()
    if "disk" in watched:
        numbers |= {number for name in _OPENING if (number := _CALLS[name].numbers[at]) is not None} | set(
            list_write_calls(machine)
        )
    return frozenset(numbers)


def list_uses(call: int, arguments: Sequence[int]) -> Iterator[FileUse]:
    """Yield what a call needs from each of its paths."""
    for form in list_path_calls().get(call, ()):
        flags = arguments[form.more] & 0xFFFFFFFF if form.more != _ABSENT else 0
        folder = AT_CWD if form.folder == _ABSENT else arguments[form.folder] & 0xFFFFFFFF
        yield _find_needs(form.kind, flags)._replace(folder=folder, name=arguments[form.name])


def _find_needs(kind: str, flags: int) -> FileUse:
    if kind == "open":
        return _find_open_needs(flags)
    if kind == "look at":
        return FileUse(0, 0, exists=True, follows=not flags & _NOFOLLOW_AT)
    if kind == "access":
        return FileUse(0, 0, exists=True, opens=flags != 0, writes=bool(flags & os.W_OK))
    return _FIXED[kind]


def _find_open_needs(flags: int) -> FileUse:
    if flags & _PATH_ONLY:
        return FileUse(0, 0, exists=True, follows=not flags & os.O_NOFOLLOW)
    makes, exclusive = bool(flags & os.O_CREAT), bool(flags & os.O_CREAT and flags & os.O_EXCL)
    writes = bool(flags & os.O_ACCMODE or flags & os.O_TRUNC)
    return FileUse(
        0,
        0,
        exists=not makes,
        opens=not exclusive,
        writes=writes and not exclusive,
        makes=makes,
        follows=not (exclusive or flags & os.O_NOFOLLOW),
        keeps=writes and not flags & os.O_TRUNC,
    )


def _get_column(machine: str) -> int:
    return ("x86_64", "aarch64").index(machine or platform.machine())
