"""The history of runs as a table, and its file."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import convert
from msgspec.structs import asdict, replace

from holdfast.model.codec import create_decoder, encode_canonical
from holdfast.store import history_table
from holdfast.store.past_run import PastCell, PastRun

FILE = "history.db"
WAIT_S = 20.0
"""Seconds to wait for another process that writes to the history."""


class NewerFile(Exception):
    """The history's tables were made by a newer version."""


def open_database(path: Path) -> sqlite3.Connection:
    """Open the file with its tables; sqlite3.DatabaseError if it is damaged or cannot be used."""
    _create_file(path)
    db = sqlite3.connect(path, timeout=WAIT_S, isolation_level=None)
    try:
        answer = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if answer != "ok":
            raise sqlite3.DatabaseError(str(answer).splitlines()[0])
        with begin_transaction(db):
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


def _create_file(path: Path) -> None:
    """Create an empty file that only the user may read, like runs; if that fails, SQLite says why."""
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600))


@contextmanager
def begin_transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Begins with a write lock, so two readers that become writers do not wait for each other."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def is_damaged(broken: sqlite3.DatabaseError) -> bool:
    """Whether the content of the file is wrong; otherwise it is locked, read-only, or the disk is full."""
    return not isinstance(broken, sqlite3.OperationalError) or broken.sqlite_errorcode == sqlite3.SQLITE_ERROR


def set_aside(path: Path) -> Path | None:
    """Rename a damaged file; None if that fails, the file itself if another process has just fixed it."""
    lock = path.with_name(path.name + ".lock")
    try:
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        if _is_sound(path):
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


def _is_sound(path: Path) -> bool:
    """Whether the file is sound; one that another process is writing to is."""
    try:
        open_database(path).close()
    except sqlite3.DatabaseError as broken:
        return not is_damaged(broken)
    except NewerFile:
        return True
    return True


SCHEMA = 4
"""The version of the tables. An older file is rebuilt, a newer one is left alone."""

CREATE = """
CREATE TABLE runs (
  id TEXT PRIMARY KEY, part TEXT, started TEXT, duration_s REAL, spec TEXT, spec_digest TEXT, agent_digest TEXT,
  seed INTEGER, version TEXT, "commit" TEXT, dirty INTEGER, branch TEXT, ended INTEGER, complete INTEGER, whole INTEGER,
  score REAL, low REAL, high REAL, shows_interval INTEGER, overall REAL, passed INTEGER, in_failed_run INTEGER,
  exit_code INTEGER, trials INTEGER, judged INTEGER, total INTEGER, counts TEXT, cases INTEGER, cases_passed INTEGER,
  critical_failed TEXT, calls INTEGER, cost_usd REAL, note TEXT, state TEXT, stamp TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX runs_of ON runs (spec, part);
CREATE TABLE cells (
  run TEXT, rule TEXT, scenario TEXT, outcome TEXT, critical INTEGER,
  passes INTEGER, fails INTEGER, errors INTEGER, unproven INTEGER,
  PRIMARY KEY (run, rule, scenario)
) WITHOUT ROWID;
"""
_RUN = tuple(name for name in PastRun.__struct_fields__ if name != "cells")
_JSON = ("counts", "critical_failed")
_counts, _names = create_decoder(dict[str, int]), create_decoder(tuple[str, ...])


def create(db: sqlite3.Connection) -> None:
    """Create the tables, replacing those of an older schema."""
    for name in ("runs", "cells"):
        db.execute(f"DROP TABLE IF EXISTS {name}")
    for statement in CREATE.strip().split(";\n"):
        db.execute(statement.rstrip(";"))
    db.execute(f"PRAGMA user_version = {SCHEMA}")


def check(db: sqlite3.Connection) -> None:
    """Raise sqlite3.OperationalError if the tables are not as `create` makes them."""
    for table, names in (("runs", (*_RUN, "stamp")), ("cells", ("run", *PastCell.__struct_fields__))):
        db.execute(f"SELECT {_quote_names(names)} FROM {table} LIMIT 0")  # noqa: S608  # our own names


def write_run(db: sqlite3.Connection, run: PastRun, stamp: str) -> None:
    """Replace a run's row and cells."""
    remove_run(db, run.id)
    row = {**asdict(run), "stamp": stamp}
    del row["cells"]
    for name in _JSON:
        row[name] = encode_canonical(row[name]).decode()
    values = [_make_storable(value) for value in row.values()]
    db.execute(f"INSERT INTO runs ({_quote_names(row)}) VALUES ({_build_placeholders(len(row))})", values)  # noqa: S608  # our own names
    cells = [(run.id, *map(_make_storable, asdict(cell).values())) for cell in run.cells]
    db.executemany(f"INSERT OR REPLACE INTO cells VALUES ({_build_placeholders(9)})", cells)  # noqa: S608


def remove_run(db: sqlite3.Connection, id: str) -> None:
    db.execute("DELETE FROM runs WHERE id = ?", [id])
    db.execute("DELETE FROM cells WHERE run = ?", [id])


def read_stamps(db: sqlite3.Connection) -> dict[str, str]:
    """Return the fingerprint of each run's files when its row was written, by id."""
    return dict(db.execute("SELECT id, stamp FROM runs").fetchall())


def read_rows(db: sqlite3.Connection, *, cells_of: Iterable[str] | None = ()) -> list[PastRun]:
    """Return every run, newest first; with the cells of the named runs, or of all."""
    runs = [_read_run(row) for row in db.execute(f"SELECT {_quote_names(_RUN)} FROM runs")]  # noqa: S608  # our own names
    wanted = {run.id for run in runs} if cells_of is None else set(cells_of)
    made = [replace(run, cells=_read_cells(db, run.id)) if run.id in wanted else run for run in runs]
    return sorted(made, key=lambda run: run.order, reverse=True)


def _read_run(row: tuple[object, ...]) -> PastRun:
    known = dict(zip(_RUN, row, strict=True))
    known["counts"] = _counts.decode(str(known["counts"]))
    known["critical_failed"] = _names.decode(str(known["critical_failed"]))
    return convert(known, PastRun, strict=False)


def _read_cells(db: sqlite3.Connection, run: str) -> tuple[PastCell, ...]:
    names = ", ".join(PastCell.__struct_fields__)
    cells = db.execute(f"SELECT {names} FROM cells WHERE run = ? ORDER BY rule, scenario", [run])  # noqa: S608
    fields = PastCell.__struct_fields__
    return tuple(convert(dict(zip(fields, row, strict=True)), PastCell, strict=False) for row in cells)


def _make_storable(value: object) -> object:
    """Return a text that SQLite can store: a path may have bytes that are not UTF-8."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _quote_names(names: Iterable[str]) -> str:
    """Quote names with brackets: SQLite would read an unknown name in double quotes as a string."""
    return ", ".join(f"[{name}]" for name in names)


def _build_placeholders(count: int) -> str:
    return ", ".join("?" * count)
