"""What a run wrote, told apart from what something else made of its files.

An agent without a sandbox has the user's rights: it can write where the run does. While it runs nothing is judged from
the files, and when it is gone they are put back as the run wrote them and sealed. What is changed later is noticed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from holdfast.errors import UserError

if TYPE_CHECKING:
    from holdfast.store.rundir import RunDir

SIZE = 16
_READ = 1 << 20

PUT_BACK = "something else wrote to it during the run; it was put back as the run wrote it"
LOST = "something else changed it during the run; the verdicts hold, but what is shown of the trials may be forged"
NOT_SEALED = "not sealed: the run was killed or is still running, and its files are taken as they are"


class Seal(Struct, frozen=True):
    """A file as the run wrote it."""

    lines: int
    digest: str


class Written:
    """What was written to one file, without keeping it: its digest, and where others wrote between."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._digest = blake2b(digest_size=SIZE)
        self._lines = 0
        self._end = 0
        self._others: list[tuple[int, int]] = []
        """From where to where somebody else's bytes lie."""
        for data in _chunks(fd, 0, os.fstat(fd).st_size):  # of an earlier part of the run
            self._digest.update(data)
            self._lines += data.count(b"\n")
            self._end += len(data)

    def wrote(self, data: bytes) -> None:
        """So much was appended just now."""
        end = os.lseek(self._fd, 0, os.SEEK_CUR)
        self._foreign(end - len(data))
        self._end = end
        self._digest.update(data)
        self._lines += data.count(b"\n")

    def seal(self, path: Path) -> tuple[Seal, str]:
        """The file's seal, and what to say if something else had written to it: then it is put back if it can be."""
        self._foreign(os.fstat(self._fd).st_size)
        seal = Seal(self._lines, self._digest.hexdigest())
        touched = bool(self._others) or not _is_at(self._fd, path)
        if touched:
            self._put_back(path)
        if seal_of(path) != seal:
            return seal, f"{path.name}: {LOST}"
        return seal, f"{path.name}: {PUT_BACK}" if touched else ""

    def _put_back(self, path: Path) -> None:
        beside = path.with_name(path.name + ".new")
        beside.unlink(missing_ok=True)
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.writelines(self._own())
        beside.replace(path)

    def _foreign(self, start: int) -> None:
        """Our next bytes begin here: what lies between is not ours."""
        if start > self._end:
            self._others.append((self._end, start))
            self._end = start

    def _own(self) -> Iterator[bytes]:
        at = 0
        for start, end in self._others:
            yield from _chunks(self._fd, at, start)
            at = end
        yield from _chunks(self._fd, at, self._end)


def seal_of(path: Path) -> Seal | None:
    """The seal that a file should have as it is now; None if it is not there."""
    if not path.is_file():
        return None
    digest, lines = blake2b(digest_size=SIZE), 0
    with open(path, "rb") as file:
        while data := file.read(_READ):
            digest.update(data)
            lines += data.count(b"\n")
    return Seal(lines, digest.hexdigest())


def check(run: RunDir, *, force: bool = False) -> str:
    """Refuses a run whose files changed after it was sealed; with `force`, or without a seal, what to say of that."""
    ended = run.ended()
    if ended is None or not ended.sealed:
        return NOT_SEALED
    found = {path.name: path for path in run.record_files()}
    names = sorted(found.keys() | ended.sealed.keys())
    changed = [name for name in names if name not in found or seal_of(found[name]) != ended.sealed.get(name)]
    if not changed:
        return ""
    said = f"run {run.id}: {', '.join(changed)} changed since the run wrote it; what it holds may be forged"
    if force:
        return said
    again = "run" if run.manifest().part == "scenario" else "contract run"
    raise UserError(said, hint=f"run it anew, or insist: holdfast {again} --resume {run.id} --force")


def _is_at(fd: int, path: Path) -> bool:
    """Whether the file that is open still has its name."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path, follow_symlinks=False))
    except OSError:
        return False


def _chunks(fd: int, start: int, end: int) -> Iterator[bytes]:
    while start < end and (data := os.pread(fd, min(_READ, end - start), start)):
        yield data
        start += len(data)
