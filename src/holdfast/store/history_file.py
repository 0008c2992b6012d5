"""The file of the history: opened with its tables, or told apart from one that is damaged, newer or out of reach."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.store import history_table

FILE = "history.db"
WAIT_S = 20.0
"""For another process that writes to the history."""


class NewerFile(Exception):
    """A history whose tables a newer version made."""


def connected(path: Path) -> sqlite3.Connection:
    """The file, with its tables; sqlite3.DatabaseError if it is damaged or cannot be used."""
    _make(path)
    db = sqlite3.connect(path, timeout=WAIT_S, isolation_level=None)
    try:
        found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(str(found).splitlines()[0])
        with transaction(db):
            schema = db.execute("PRAGMA user_version").fetchone()[0]
            if schema > history_table.SCHEMA:
                raise NewerFile
            if schema < history_table.SCHEMA:
                history_table.create(db)
        history_table.check(db)
    except BaseException:
        db.close()
        raise
    return db


def _make(path: Path) -> None:
    """An empty file that only the user may read, as runs are; where that cannot be, SQLite says why."""
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600))


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Begins by writing, so that two who read first do not both wait for the other."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def is_damaged(broken: sqlite3.DatabaseError) -> bool:
    """Whether what is in the file is wrong; else it is locked, may not be written, or the disk is full."""
    return not isinstance(broken, sqlite3.OperationalError) or broken.sqlite_errorcode == sqlite3.SQLITE_ERROR


def set_aside(path: Path) -> Path | None:
    """Renames a damaged file; None if that cannot be done, the file itself if another process has just mended it."""
    lock = path.with_name(path.name + ".lock")
    try:
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        if _sound(path):
            return path
        number = 1
        while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
            number += 1
        path.with_name(path.name + "-journal").unlink(missing_ok=True)
        path.rename(aside)
        return aside
    except OSError:
        return None
    finally:
        os.close(fd)


def _sound(path: Path) -> bool:
    """One that another process is writing to is sound."""
    try:
        connected(path).close()
    except sqlite3.DatabaseError as broken:
        return not is_damaged(broken)
    except NewerFile:
        return True
    return True
