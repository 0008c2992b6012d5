"""Files of JSON lines: reads, writes and seals them.

An agent without a sandbox has the user's rights: it can write where the run does. While it runs, nothing is judged from
the files. When it is gone, they are restored to what the run wrote, and sealed. Later changes are detected."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from itertools import accumulate
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
_LINES = 1 << 16
"""Approximate number of bytes of lines read together."""

T = TypeVar("T")


def read_lines(path: Path) -> Iterator[bytes]:
    """Return every complete line; a torn last one is dropped."""
    return (line for _, lines in _read_blocks(path) for line in lines)


def read_records(
    path: Path, decode: Callable[[bytes], T], decode_lines: Callable[[bytes], Sequence[T]]
) -> Iterator[tuple[int, T]]:
    """Yield every record, with the offset of its line; UserError names a line that is not a record."""
    number = 1
    for start, lines in _read_blocks(path):
        starts = accumulate(map(len, lines), initial=start)
        decoded = _decode_block(lines, decode_lines)
        if decoded is not None:
            yield from zip(starts, decoded, strict=False)  # starts has one more entry: where the next block begins
        else:
            yield from zip(starts, _decode_each(lines, decode, path, number), strict=False)
        number += len(lines)


def build_unreadable_error(where: str, broken: Exception, hint: str) -> UserError:
    """Return the error for a position that Holdfast did not write; the user has to fix it."""
    return UserError(f"{where}: not a record of a run: {broken}", hint=hint, code="run-damaged")


def _read_blocks(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Yield blocks of complete lines, each with the offset of its first line."""
    if not path.is_file():  # reading a pipe at this path would never end
        return
    start = 0
    with open(path, "rb") as file:
        while lines := file.readlines(_LINES):
            torn = not lines[-1].endswith(b"\n")
            if torn:
                lines.pop()
            if lines:
                yield start, lines
            if torn:  # the writer may have continued since: the rest of that line is not a line
                return
            start += sum(map(len, lines))


def _decode_block(lines: list[bytes], decode_lines: Callable[[bytes], Sequence[T]]) -> Sequence[T] | None:
    """Return the records of the lines, if each is one: Holdfast writes exactly one record per line."""
    # Decoding a block is faster than decoding its lines, but it would accept two objects on one line. Counting the
    # borders between objects excludes that. Any doubt leads to the slow way, which names the line.
    block = b"".join(lines)
    is_intact = block.startswith(b"{") and block.count(b"}\n{") == len(lines) - 1 and block.endswith(b"}\n")
    if not is_intact:
        return None
    try:
        decoded = decode_lines(block)
    except UNREADABLE:
        return None
    return decoded if len(decoded) == len(lines) else None


def _decode_each(lines: list[bytes], decode: Callable[[bytes], T], path: Path, number: int) -> Iterator[T]:
    for at, line in enumerate(lines, number):
        try:
            yield decode(line)
        except UNREADABLE as broken:
            raise build_unreadable_error(f"{path}:{at}", broken, FIX_LINE) from broken


_BLOCK = 1 << 16


class LineReader:
    """A file open for reading; close it after use."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._start = 0
        self._block = b""

    def read_line(self, start: int) -> bytes:
        """Return the line that starts there, without its newline."""
        at = start - self._start
        if 0 <= at < len(self._block):
            end = self._block.find(b"\n", at)
            if end >= 0:
                return self._block[at:end]
        return self._read(start)

    def _read(self, start: int) -> bytes:
        size = _BLOCK
        while True:
            block = os.pread(self._fd, size, start)
            end = block.find(b"\n")
            if end >= 0 or len(block) < size:
                break
            size *= 2
        self._start, self._block = start, block
        return block[:end] if end >= 0 else block

    def close(self) -> None:
        os.close(self._fd)


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
