"""Marks and notes of people, stored next to the runs and never in them: `.holdfast/notes.jsonl`.

One line per change; the last one of a key counts. Several viewers may write: each locks a separate file while it
appends. A torn last line is dropped.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from msgspec import MsgspecError, Struct

from holdfast.errors import UsageError
from holdfast.model.codec import create_decoder, encode

FILE, LOCK = "notes.jsonl", "notes.lock"
LONG = 10_000
"""Characters of a note."""
NoteMark = Literal["", "star", "todo", "ok", "wrong"]


class NoteText(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request."""

    mark: NoteMark = ""
    note: str = ""


class KeptNote(Struct, frozen=True):
    """A mark and a note on a run, or on one of its trials."""

    mark: NoteMark = ""
    note: str = ""
    at: str = ""


class _NoteLine(KeptNote, frozen=True, kw_only=True):
    key: str


_texts, _lines = create_decoder(NoteText), create_decoder(_NoteLine)


def read_text(body: bytes) -> NoteText:
    """Return the request's content; raise UsageError if it is not a note."""
    try:
        sent = _texts.decode(body)
    except (MsgspecError, ValueError, RecursionError) as wrong:
        raise UsageError(
            f"not a note: {wrong}", hint='send {"mark": "star", "note": "…"}', code="argument-invalid"
        ) from wrong
    if len(sent.note) > LONG:
        raise UsageError(
            f"the note has {len(sent.note):,} characters", hint=f"at most {LONG:,} are kept", code="argument-invalid"
        )
    return sent


class Notes:
    """The notes of a project, read again whenever the file has changed."""

    def __init__(self, folder: Path, now: Callable[[], str] | None = None) -> None:
        self._folder = folder
        self._path = folder / FILE
        self._now = now or (lambda: datetime.now(UTC).isoformat(timespec="seconds"))
        self._guard = threading.Lock()
        self._stamp: tuple[int, ...] | None = None
        self._kept: dict[str, KeptNote] = {}

    def read_all(self) -> dict[str, KeptNote]:
        """Return all notes by key: `0007`, or `0007/trial/7f3a2c`."""
        with self._guard:
            self._read()
            return dict(self._kept)

    def save(self, key: str, text: NoteText) -> KeptNote:
        """Write a note; an empty mark and an empty note remove it."""
        note = KeptNote(text.mark, text.note, self._now())
        with self._guard, self._lock():
            self._append(_NoteLine(note.mark, note.note, note.at, key=key))
        return note

    def _append(self, line: _NoteLine) -> None:
        fd = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with open(fd, "ab", buffering=0) as file:
            size = os.fstat(fd).st_size
            # A killed viewer may have left half a line; the next note must begin on a line of its own.
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            file.write((b"\n" if torn else b"") + encode(line) + b"\n")

    def _read(self) -> None:
        try:
            stat = os.stat(self._path)
        except OSError:
            self._stamp, self._kept = None, {}
            return
        stamp = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if stamp == self._stamp:
            return
        notes: dict[str, KeptNote] = {}
        for line in self._path.read_bytes().split(b"\n")[:-1]:
            try:
                note = _lines.decode(line)
            except (MsgspecError, ValueError, RecursionError):
                continue  # another program wrote it, or it was torn
            notes.pop(note.key, None)
            if note.mark or note.note:
                notes[note.key] = KeptNote(note.mark, note.note, note.at)
        self._stamp, self._kept = stamp, notes

    @contextmanager
    def _lock(self) -> Iterator[None]:
        fd = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)
