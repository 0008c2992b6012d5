"""Reads from another process's memory what it is about to execute. Standard library only."""

from __future__ import annotations

import json
import os
import struct
import time
from typing import NamedTuple

AT_FDCWD = 0xFFFFFF9C
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
        image = _read_image(pid, memory)
    finally:
        os.close(memory)
    cwd = os.readlink(f"/proc/{pid}/cwd")
    return ExecAttempt(json.dumps({"argv": [_decode(w) for w in words], "cwd": cwd, "ts": at}).encode(), image)


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


def _read_image(pid: int, memory: int) -> ExecImage:
    auxiliary = _read_auxiliary(pid)
    return ExecImage(auxiliary, _read_random(memory, auxiliary))


def _read_auxiliary(pid: int) -> bytes:
    fd = os.open(f"/proc/{pid}/auxv", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _PAGE)
    finally:
        os.close(fd)


def _read_random(memory: int, auxiliary: bytes) -> bytes:
    whole = auxiliary[: len(auxiliary) // _AUXILIARY.size * _AUXILIARY.size]
    at = next((value for key, value in _AUXILIARY.iter_unpack(whole) if key == _AT_RANDOM), 0)
    return os.pread(memory, _RANDOM_BYTES, at) if at else b""


def _has_file(pid: int, folder: int, name: bytes) -> bool:
    """Return whether a file of that name exists; a link counts, because it cannot be followed from here."""
    if not name:
        return True  # by descriptor
    if name.startswith(b"/"):
        base = f"/proc/{pid}/root"
    else:
        base = f"/proc/{pid}/cwd/" if folder == AT_FDCWD else f"/proc/{pid}/fd/{folder}/"
    return os.path.lexists(os.fsencode(base) + name)


def _read_words(memory: int, at: int) -> list[bytes]:
    words: list[bytes] = []
    left = _TOTAL_BYTES
    for n in range(_ARGUMENTS):
        pointer = int.from_bytes(os.pread(memory, 8, at + 8 * n), "little") if at else 0
        if not pointer or left <= 0:
            return words
        words.append(read_string(memory, pointer, min(left, _ARGUMENT_BYTES)))
        left -= len(words[-1])
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


def _decode(word: bytes) -> str:
    return word.decode("utf-8", "backslashreplace")
