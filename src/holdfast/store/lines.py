"""Reads and writes files of JSON lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from holdfast.store.seals import LOST, PUT_BACK, SIZE, Seal, compute_seal

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


_READ = 1 << 20
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
    """Whether the open file still has this path."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path, follow_symlinks=False))
    except OSError:
        return False


def _read_chunks(fd: int, start: int, end: int) -> Iterator[bytes]:
    while start < end and (data := os.pread(fd, min(_READ, end - start), start)):
        yield data
        start += len(data)
