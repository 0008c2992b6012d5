"""`history.db`: an SQLite index of all stored runs, rebuilt from the run directories when needed.

The run directories are the truth. A run itself writes nothing here: every reader updates the history. A damaged file is
set aside; if no file can be written, the history is built in memory. Neither hides anything.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from holdfast.folders import get_own_folder_of
from holdfast.store import history_table
from holdfast.store.history_table import FILE, NewerFile, begin_transaction, is_damaged, open_database, set_aside
from holdfast.store.past_run import PastRun
from holdfast.store.run_folders import PARTS, get_id, list_damaged_runs, list_parts, list_stored_runs
from holdfast.store.rundir import RunDir
from holdfast.version import __version__

BATCH = 32
"""Runs added in one transaction: an interrupted rebuild keeps what was done."""
Read = Callable[[RunDir], PastRun]
"""Reads a run; a note says why a run cannot be read. Never raises."""
Tell = Callable[[str], None]


class _StaleRun(NamedTuple):
    """A run whose history row is missing or out of date."""

    run: RunDir
    stamp: str


Indexing = Callable[["History", int | None], None]
"""Receives, while a history is updated, how many runs are still to be read; those read are in it. None: not known yet.
"""


class History:
    """The runs of one project, as of when it was opened or last updated."""

    def __init__(self, db: sqlite3.Connection, runs: Path, read: Read) -> None:
        self._db = db
        self._folder = runs
        self._read = read
        self._others = 0
        """SQLite's counter of changes by other processes."""

    def update(self, step: Indexing | None = None) -> bool:
        """Read what changed on disk, newest first; returns whether anything changed here or in another process.

        Runs are read outside of a transaction, so a long rebuild blocks nobody.
        """
        db = self._db
        if step is not None:
            step(self, None)
        known = history_table.read_stamps(db)
        there = {get_id(path): path for path in _list_runs(self._folder)}
        stale = [
            _StaleRun(RunDir(path), now) for id, path in there.items() if known.get(id) != (now := _build_stamp(path))
        ]
        # The newest first: somebody who watches a rebuild looks for the last run, not for the first.
        stale.reverse()
        gone = [id for id in known if id not in there]
        if gone:
            with begin_transaction(db):
                for id in gone:
                    history_table.remove_run(db, id)
        for start in range(0, len(stale), BATCH):
            if step is not None:
                step(self, len(stale) - start)
            batch = [(self._read(one.run), one.stamp) for one in stale[start : start + BATCH]]
            with begin_transaction(db):
                for run, stamp in batch:
                    history_table.write_run(db, run, stamp)
        others, self._others = self._others, db.execute("PRAGMA data_version").fetchone()[0]
        return bool(stale or gone or others != self._others)

    def read_runs(self, *, cells_of: Iterable[str] | None = ()) -> list[PastRun]:
        """Return every run, newest first; with the cells of the named runs, or of all."""
        return history_table.read_rows(self._db, cells_of=cells_of)

    def run(self, id: str) -> PastRun | None:
        """Return one run with its cells."""
        return next((run for run in self.read_runs(cells_of=[id]) if run.id == id), None)

    def close(self) -> None:
        self._db.close()


@contextmanager
def open_index(runs: Path, read: Read, tell: Tell, step: Indexing | None = None) -> Iterator[History]:
    """The updated history of the runs in that folder; `tell` receives problems with its file."""
    with closing(_open_current(runs, read, tell, step)) as history:
        yield history


def _open_current(runs: Path, read: Read, tell: Tell, step: Indexing | None) -> History:
    path = get_own_folder_of(runs) / FILE
    if not runs.is_dir():
        return _open_in_memory(runs, read, step)
    for _ in range(2):
        try:
            return _open_updated(open_database(path), runs, read, step)
        except NewerFile:
            tell(f"{path} was written by a newer Holdfast and stays as it is; this history is not saved")
            return _open_in_memory(runs, read, step)
        except sqlite3.DatabaseError as broken:
            if not is_damaged(broken):
                tell(f"the history cannot be kept in {path} ({broken}); it is built from the runs in memory")
                return _open_in_memory(runs, read, step)
            aside = set_aside(path)
            if aside is None:
                break
            if aside != path:
                tell(f"{path} was damaged ({broken}): it is now {aside.name}, and a new one is built from the runs")
    tell(f"{path} is damaged and cannot be moved away; the history is rebuilt from the runs and not saved")
    return _open_in_memory(runs, read, step)


def _open_in_memory(runs: Path, read: Read, step: Indexing | None) -> History:
    db = sqlite3.connect(":memory:", isolation_level=None)
    history_table.create(db)
    return _open_updated(db, runs, read, step)


def _open_updated(db: sqlite3.Connection, runs: Path, read: Read, step: Indexing | None) -> History:
    history = History(db, runs, read)
    try:
        history.update(step)
    except BaseException:
        db.close()
        raise
    return history


def _list_runs(runs: Path) -> Iterator[Path]:
    for path in list_stored_runs(runs):
        yield path
        yield from list_parts(path)
    yield from list_damaged_runs(runs)


def _build_stamp(run: Path) -> str:
    """Return a fingerprint of a run's files: names, sizes and times, and the format that this version reads."""
    # The verdict of a run of several parts also depends on its parts, and the row of a part on the overall verdict.
    other = [f"{part}/ended.json" for part in list_parts(run)]
    if run.parent.name == PARTS:
        other += (f"{run.parent.parent}/{name}" for name in ("overall.json", "run.json"))
    stats = []
    with suppress(OSError), os.scandir(run) as entries:
        stats = sorted(_stat(one.path) for one in entries if not one.is_dir())
    return " ".join((__version__, *stats, *map(_stat, other)))


def _stat(path: str) -> str:
    """Return the name, size and time of a file as text: a project may have ten thousand runs."""
    name = os.path.basename(path)
    try:
        about = os.stat(path)
    except OSError:
        return name
    return f"{name} {about.st_size}.{about.st_mtime_ns}"
