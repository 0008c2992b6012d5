"""The log of every program that starts inside a sandbox, as the kernel tells of it. A log, not a guard.

Standard library only. What is told is an attempt: those for which there is no file at all (a shell that tries the
folders of its PATH) are left out. A process could change its arguments between our reading and the kernel's.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import time

from holdfast.processes.leftovers import die_with_parent
from holdfast.world.sandbox import bpf, kernel, wire

_NOTICE = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=QqiI")
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_CONTINUE = 1
_AT_FDCWD = 0xFFFFFF9C
_ARGUMENTS, _ARGUMENT_BYTES, _TOTAL_BYTES = 256, 4096, 16_000
"""Of one command line that are kept."""
_PAGE = 4096


class Clerk:
    """A child of the holder that writes down what is started below it. It ends with its holder."""

    def __init__(self, line: socket.socket, own: str) -> None:
        """`own` is bubblewrap, which we start ourselves."""
        self._told = kernel.listen_to_calls(bpf.tell_of_programs())
        self._line = line
        self._own = own.encode()
        holder = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                die_with_parent()
                if os.getppid() == holder:
                    self._write()
            finally:
                os._exit(1)
        os.close(self._told)

    def _write(self) -> None:
        while True:
            self._next()

    def _next(self) -> None:
        """Waits for the next program, tells of it, and only then lets it start: none is told of after its end."""
        buffer = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self._told, _RECEIVE, buffer)
        except OSError:  # whoever called has been killed
            return
        number, pid, _, call, _, _, *arguments = _NOTICE.unpack(buffer)
        try:
            record = _record(pid, call, arguments, self._own)
        except (OSError, ValueError, OverflowError):  # it is gone, or points nowhere
            record = None
        if record is not None:
            wire.send(self._line, wire.COMMAND, 0, text=record)
        self._let(number)

    def _let(self, number: int) -> None:
        try:
            fcntl.ioctl(self._told, _SEND, bytearray(_ANSWER.pack(number, 0, 0, _CONTINUE)))
        except OSError:  # killed while it waited
            return


def _record(pid: int, call: int, arguments: list[int], own: bytes) -> bytes | None:
    at = time.time()
    named_at = call in {numbers["execveat"] for numbers in bpf.NUMBERS.values()}
    folder, path, argv = arguments[:3] if named_at else (_AT_FDCWD, *arguments[:2])
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        name = _text(memory.fileno(), path, _PAGE)
        if name == own or not _there(pid, folder & 0xFFFFFFFF, name):
            return None
        words = _words(memory.fileno(), argv) or [name]
    cwd = os.readlink(f"/proc/{pid}/cwd")
    return json.dumps({"argv": [_shown(w) for w in words], "cwd": cwd, "ts": at}).encode()


def _there(pid: int, folder: int, name: bytes) -> bool:
    """Whether there is a file of that name; a link counts, as it cannot be followed from here."""
    if not name:
        return True  # by descriptor
    if name.startswith(b"/"):
        base = f"/proc/{pid}/root"
    else:
        base = f"/proc/{pid}/cwd/" if folder == _AT_FDCWD else f"/proc/{pid}/fd/{folder}/"
    return os.path.lexists(os.fsencode(base) + name)


def _words(memory: int, at: int) -> list[bytes]:
    words: list[bytes] = []
    left = _TOTAL_BYTES
    for n in range(_ARGUMENTS):
        pointer = int.from_bytes(os.pread(memory, 8, at + 8 * n), "little") if at else 0
        if not pointer or left <= 0:
            return words
        words.append(_text(memory, pointer, min(left, _ARGUMENT_BYTES)))
        left -= len(words[-1])
    return [*words, "…".encode()]


def _text(memory: int, at: int, limit: int) -> bytes:
    """A string of another process, read page by page: the next one may not be there."""
    found = bytearray()
    while len(found) < limit:
        piece = os.pread(memory, min(_PAGE - at % _PAGE, limit - len(found)), at)
        end = piece.find(b"\0")
        if end >= 0 or not piece:
            return bytes(found + piece[: max(end, 0)])
        found += piece
        at += len(piece)
    return bytes(found)


def _shown(word: bytes) -> str:
    return word.decode("utf-8", "backslashreplace")
