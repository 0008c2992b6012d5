"""The history: a row for each stored run, kept in `.holdfast/history` to read no run twice.

The run directories are the truth. A run itself writes nothing here: every reader updates the rows that are missing or
out of date. A row that cannot be read is made again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from math import inf
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict, replace

from holdfast.folders import HISTORY, get_own_folder_of
from holdfast.model.codec import create_decoder, encode
from holdfast.store.lines import UNREADABLE
from holdfast.store.past_run import PastCell, PastRun
from holdfast.store.run_folders import PARTS, get_id, get_run_folder, list_damaged_runs, list_parts, list_stored_runs
from holdfast.store.rundir import RunDir
from holdfast.version import __version__

FORMAT = 2
"""The format of a row: a row of another format is made again."""
SUFFIX = ".json"
Read = Callable[[RunDir], PastRun]
"""Reads a run; a note says why a run cannot be read. Never raises."""


class HistoryRow(Struct, frozen=True):
    """A run without its cells, and the fingerprint of its files when it was read."""

    stamp: str
    run: PastRun


class _Cells(Struct, frozen=True):
    """The cells of the run, which the row's file also holds: most readers do not need them."""

    cells: tuple[PastCell, ...] = ()


_row, _cells = create_decoder(HistoryRow), create_decoder(_Cells)


class History:
    """The runs of one project, as of when it was last updated."""

    def __init__(self, runs: Path, read: Read) -> None:
        self._runs = runs
        self._folder = get_own_folder_of(runs) / HISTORY
        self._read = read
        self._rows = {row.run.id: row for row in self._read_rows()}

    def update(self, limit_s: float = inf) -> int:
        """Read what changed on disk, newest first, for as long as the limit allows; return how many runs are left."""
        until = time.monotonic() + limit_s
        stamps = {get_id(path): (path, build_stamp(path)) for path in _list_runs(self._runs)}
        for id in [id for id in self._rows if id not in stamps]:
            del self._rows[id]
            with suppress(OSError):
                self._get_file(id).unlink()
        stale = [id for id, (_, stamp) in stamps.items() if id not in self._rows or self._rows[id].stamp != stamp]
        # The newest first: somebody who watches looks for the last run, not for the first.
        for number, id in enumerate(reversed(stale)):
            if number and time.monotonic() > until:
                return len(stale) - number
            path, stamp = stamps[id]
            self._write(stamp, self._read(RunDir(path)))
        return 0

    def read_runs(self, *, cells_of: Iterable[str] | None = ()) -> list[PastRun]:
        """Return every run, newest first; with the cells of the named runs, or of all."""
        wanted = self._rows.keys() if cells_of is None else set(cells_of)
        runs = [
            replace(row.run, cells=self._read_cells(id)) if id in wanted else row.run for id, row in self._rows.items()
        ]
        return sorted(runs, key=lambda run: run.order, reverse=True)

    def _read_rows(self) -> Iterator[HistoryRow]:
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                # Reading a pipe would never end.
                if entry.name.endswith(SUFFIX) and entry.is_file(follow_symlinks=False):
                    with suppress(OSError, *UNREADABLE):
                        row = _row.decode(Path(entry.path).read_bytes())
                        # The file name decides the id: an agent without a sandbox may have changed the file.
                        if entry.name[:1].isdigit() and get_row_name(row.run.id) == entry.name:
                            yield row

    def _read_cells(self, id: str) -> tuple[PastCell, ...]:
        try:
            return _cells.decode(self._get_file(id).read_bytes()).cells
        except (OSError, *UNREADABLE):  # it could not be written, or somebody removed or changed it since
            return self._write(self._rows[id].stamp, self._read(RunDir(get_run_folder(self._runs, id))))

    def _write(self, stamp: str, run: PastRun) -> tuple[PastCell, ...]:
        """Store the row in memory and on disk, and return the cells of the run."""
        # A path may have bytes that are not UTF-8.
        texts = {name: _to_utf8(value) for name, value in asdict(run).items() if isinstance(value, str)}
        row = HistoryRow(stamp, replace(run, cells=(), **texts))
        self._rows[run.id] = row
        with suppress(OSError):
            write_row(self._folder, row, run.cells)
        return run.cells

    def _get_file(self, id: str) -> Path:
        return self._folder / get_row_name(id)


def get_row_name(id: str) -> str:
    """Return `0007.json`, or `0007-contract.json` for a part."""
    return id.replace("/", "-") + SUFFIX


def write_row(folder: Path, row: HistoryRow, cells: tuple[PastCell, ...]) -> None:
    """Write a row in one step: several processes may write it, and any of them may be killed."""
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / get_row_name(row.run.id)
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_bytes(encode({"stamp": row.stamp, "run": row.run, "cells": cells}))
    temporary.replace(path)


def _list_runs(runs: Path) -> Iterator[Path]:
    for path in list_stored_runs(runs):
        yield path
        yield from list_parts(path)
    yield from list_damaged_runs(runs)


def build_stamp(run: Path) -> str:
    """Return a fingerprint of a run's files: names, sizes and times, and the format that this version reads."""
    # The verdict of a run of several parts also depends on its parts, and the row of a part on the overall verdict.
    other = [f"{part}/ended.json" for part in list_parts(run)]
    if run.parent.name == PARTS:
        other += (f"{run.parent.parent}/{name}" for name in ("overall.json", "run.json"))
    stats = []
    with suppress(OSError), os.scandir(run) as entries:
        stats = sorted(_stat(one.path) for one in entries if not one.is_dir())
    return _to_utf8(" ".join((__version__, str(FORMAT), *stats, *map(_stat, other))))


def _stat(path: str) -> str:
    """Return the name, size and time of a file as text: a project may have ten thousand runs."""
    name = os.path.basename(path)
    try:
        stat = os.stat(path)
    except OSError:
        return name
    return f"{name} {stat.st_size}.{stat.st_mtime_ns}"


def _to_utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
