"""Files of JSON lines: reads, writes and seals them.

An agent without a sandbox has the user's rights: it can write where the run does. While it runs, nothing is judged from
the files. When it is gone, they are restored to what the run wrote, and sealed. Later changes are detected."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from holdfast.errors import UserError

SIZE = 16
_READ = 1 << 20

PUT_BACK = "something else wrote to it during the run; it was put back as the run wrote it"
LOST = "another program changed it during the run; the verdicts hold, but the trials shown may be forged"
NOT_SEALED = "not sealed: the run was killed or its disk was full, so changes to its files cannot be detected"
NOT_SEALED_YET = "not sealed yet: the run is still being written, so changes to its files cannot be detected"


class Seal(Struct, frozen=True):
    """A file as the run wrote it."""

    lines: int
    digest: str


def compute_seal(path: Path) -> Seal | None:
    """Return the seal for a file's current content; None if it does not exist."""
    if not path.is_file():
        return None
    digest, lines = blake2b(digest_size=SIZE), 0
    with open(path, "rb") as file:
        while data := file.read(_READ):
            digest.update(data)
            lines += data.count(b"\n")
    return Seal(lines, digest.hexdigest())


FIX_LINE = "someone or the agent changed it: fix or remove the line; --resume runs the missing trials"
UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)

T = TypeVar("T")


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield every complete line; a torn last one is dropped."""
    return (line for _, line in _read_placed_lines(path))


def read_records(path: Path, decode: Callable[[bytes], T], *, lenient: bool = False) -> Iterator[tuple[int, T]]:
    """Yield every record, with the offset of its line; UserError names a line that is not a record.

    `lenient`: such a line is passed over.
    """
    for number, (start, line) in enumerate(_read_placed_lines(path), 1):
        try:
            record = decode(line)
        except UNREADABLE as broken:
            if lenient:
                continue
            raise build_unreadable_error(f"{path}:{number}", broken, FIX_LINE) from broken
        yield start, record


def build_unreadable_error(where: str, broken: Exception, hint: str) -> UserError:
    """Return the error for a position that Holdfast did not write; the user has to fix it."""
    return UserError(f"{where}: not a record of a run: {broken}", hint=hint, code="run-damaged")


def _read_placed_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    if not path.is_file():  # reading a pipe at this path would never end
        return
    start = 0
    with open(path, "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):  # torn: the writer was killed, or is still writing it
                return
            yield start, line
            start += len(line)


_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


class JsonLines:
    """A JSONL file open for appending: one write per record, without buffering.

    It keeps only the digest of what was written, and where other programs wrote in between.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, _APPEND, 0o600)
        _remove_torn_line(path, self._fd)
        self._digest = blake2b(digest_size=SIZE)
        self._lines = 0
        self._end = 0
        self._others: list[tuple[int, int]] = []
        """The byte ranges that other programs wrote."""
        for data in _read_chunks(self._fd, 0, os.fstat(self._fd).st_size):  # from an earlier session of the run
            self._digest.update(data)
            self._lines += data.count(b"\n")
            self._end += len(data)

    def write(self, line: bytes) -> None:
        """Append one record, given without its newline."""
        self.write_lines(line + b"\n", 1)

    def write_lines(self, data: bytes, lines: int) -> None:
        """Append several records in one write, each with its newline."""
        size = len(data)
        written = os.write(self._fd, data)
        if written != size:
            write_all(self._fd, data[written:])
        # O_APPEND writes at the end of the file, wherever that is by now. If this write began later than the last one
        # ended, another program wrote in between: its bytes are remembered, and cut out when the file is sealed.
        end = os.lseek(self._fd, 0, os.SEEK_CUR)
        if end - size != self._end:
            self._skip_foreign(end - size)
        self._end = end
        self._digest.update(data)
        self._lines += lines

    def seal(self) -> tuple[Seal, str]:
        """Return the file's seal, and a note if another program wrote to it: it is then restored if possible.

        Call it when no agent is running any more.
        """
        # The seal is the digest of what was written, never of what is in the file: an agent that edits the file cannot
        # change the seal with it. Whatever follows the last write is foreign, too.
        self._skip_foreign(os.fstat(self._fd).st_size)
        seal = Seal(self._lines, self._digest.hexdigest())
        touched = bool(self._others) or not _is_at(self._fd, self.path)
        if touched:
            self._restore_file()
        if compute_seal(self.path) != seal:
            return seal, f"{self.path.name}: {LOST}"
        return seal, f"{self.path.name}: {PUT_BACK}" if touched else ""

    def close(self) -> None:
        os.close(self._fd)

    def _restore_file(self) -> None:
        temporary = self.path.with_name(self.path.name + ".new")
        temporary.unlink(missing_ok=True)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.writelines(self._read_own())
        temporary.replace(self.path)

    def _skip_foreign(self, start: int) -> None:
        """Record that the next write begins here: another program wrote the bytes in between."""
        if start > self._end:
            self._others.append((self._end, start))
            self._end = start

    def _read_own(self) -> Iterator[bytes]:
        at = 0
        for start, end in self._others:
            yield from _read_chunks(self._fd, at, start)
            at = end
        yield from _read_chunks(self._fd, at, self._end)


def write_all(fd: int, data: bytes) -> None:
    """Write everything: a full disk raises, a short write is continued."""
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, data[written:])


def _remove_torn_line(path: Path, fd: int) -> None:
    """Cut off a torn last line, so the next record starts on its own line."""
    # kill -9 may leave half a line. The file is searched backwards for the last newline: it may be large, and the torn
    # part is short.
    end = size = os.fstat(fd).st_size
    while end:
        start = max(0, end - _READ)
        newline = os.pread(fd, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end != size:
        os.truncate(path, end)


def _is_at(fd: int, path: Path) -> bool:
    """Return whether the open file still has this path."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path, follow_symlinks=False))
    except OSError:
        return False


def _read_chunks(fd: int, start: int, end: int) -> Iterator[bytes]:
    while start < end and (data := os.pread(fd, min(_READ, end - start), start)):
        yield data
        start += len(data)
