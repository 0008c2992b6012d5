"""Stores judges' replies as small files, by the content of the question. The input itself is never stored."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from pathlib import Path
from stat import S_ISREG

import msgspec

from holdfast.model.codec import create_decoder, encode
from holdfast.protocols.check import Advice

FILES_KEPT = 20_000
SIZE_KEPT = 64_000
"""Maximum number of bytes of a stored reply: a rating has a few hundred."""
REMEMBERED = 1_000
"""Maximum number of replies in memory."""
_advice = create_decoder(Advice)


class AdviceCache:
    """A folder of replies.

    An agent without a sandbox could write there, so a file that appeared after this cache was opened is ignored unless
    the cache itself wrote it. The file's ctime shows that, and no program can set it back.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened_ns = time.time_ns()
        self._own: OrderedDict[str, Advice] = OrderedDict()
        self._counter = 0

    def get(self, key: str, *, own: bool = False) -> Advice | None:
        """Return the reply stored under a key of hex digits; None if there is none that can be trusted.

        `own` accepts only replies stored since this cache was opened.
        """
        if own or key in self._own:
            return self._own.get(key)
        try:
            fd = os.open(self._folder / f"{key}.json", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return _advice.decode(os.read(fd, SIZE_KEPT)) if self._is_trusted(os.fstat(fd)) else None
        except (msgspec.MsgspecError, ValueError, OSError):
            return None  # truncated or not Holdfast's: the model is asked again
        finally:
            os.close(fd)

    def _is_trusted(self, status: os.stat_result) -> bool:
        own = S_ISREG(status.st_mode) and status.st_uid == os.getuid()
        return own and status.st_size <= SIZE_KEPT and status.st_ctime_ns < self._opened_ns

    def put(self, key: str, advice: Advice) -> None:
        """Store a reply; if the disk refuses it, only in memory."""
        self._own[key] = advice
        if len(self._own) > REMEMBERED:
            self._own.popitem(last=False)
        data = encode(advice)
        if len(data) <= SIZE_KEPT:
            try:
                self._write(key, data)
            except OSError:
                return  # without a cache nothing else is lost

    def _write(self, key: str, data: bytes) -> None:
        if not self._counter:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._prune()
        self._counter += 1
        temporary = self._folder / f"{key}.{os.getpid()}-{self._counter}.new"
        try:
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with open(fd, "wb") as file:
                file.write(data)
            temporary.replace(self._folder / f"{key}.json")
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    def _prune(self) -> None:
        """Make room: removes the oldest tenth, and half-written files of a killed run."""
        with os.scandir(self._folder) as entries:
            plain = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
            files = [(entry.stat(follow_symlinks=False).st_mtime, entry.path) for entry in plain]
        stale = time.time() - 3_600
        gone = [path for at, path in files if path.endswith(".new") and at < stale]
        if len(files) > FILES_KEPT * 9 // 10:
            gone += [path for _, path in sorted(files)[: len(files) - FILES_KEPT * 8 // 10]]
        for path in gone:
            Path(path).unlink(missing_ok=True)
