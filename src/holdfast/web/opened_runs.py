"""Runs that were looked at, kept as they were read until their files change."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from holdfast.errors import UserError
from holdfast.runner.outcome import RunOutcome
from holdfast.runner.stored import look
from holdfast.store.run_names import is_run
from holdfast.store.rundir import RunDir
from holdfast.web.run_id import is_run_id, run_folder

KEPT = 6
"""Runs: one of 100,000 cells takes about 50 MB."""
T = TypeVar("T")


class NotThere(UserError):
    """There is no such run, trial, rule or page."""


class OpenedRun:
    """A run as it was read. One thread at a time may use it: its records share open files."""

    def __init__(self, outcome: RunOutcome, stamp: tuple[object, ...], *, ended: bool) -> None:
        self.outcome = outcome
        self.ended = ended
        """It came to its end, or was interrupted; else it is under way, or was killed."""
        self.stamp = stamp
        self.lock = threading.RLock()
        self.made: dict[str, bytes] = {}
        """What was made of it, by name: a matrix is asked for again and again."""


class OpenedRuns:
    """A few runs, the last that were used."""

    def __init__(self, runs: Path, environ: Mapping[str, str]) -> None:
        self._runs = runs
        self._environ = environ
        self._open: OrderedDict[str, OpenedRun] = OrderedDict()
        self._lock = threading.Lock()
        self._opening: dict[str, threading.Lock] = {}

    def folder(self, id: str) -> RunDir:
        """The run's folder; NotThere if there is none."""
        path = run_folder(self._runs, id)
        if not is_run_id(id) or not is_run(path):
            raise NotThere(f"there is no run {id}", hint="the list of runs says which there are")
        return RunDir(path)

    def use(self, id: str, what: Callable[[OpenedRun], T]) -> T:
        """Does something with a run, alone."""
        run = self.folder(id)
        with self._lock:
            opening = self._opening.setdefault(id, threading.Lock())
        with opening:  # two who ask for one run read it once
            opened = self._opened(run)
        with opened.lock:
            return what(opened)

    def close(self) -> None:
        with self._lock:
            for one in self._open.values():
                one.outcome.close()
            self._open.clear()

    def _opened(self, run: RunDir) -> OpenedRun:
        stamp = stamp_of(run)
        with self._lock:
            known = self._open.get(run.id)
            if known is not None and known.stamp == stamp:
                self._open.move_to_end(run.id)
                return known
        opened = OpenedRun(look(run, environ=self._environ), stamp, ended=run.ended() is not None)
        with self._lock:
            self._open[run.id] = opened
            self._open.move_to_end(run.id)
            while len(self._open) > KEPT:
                self._open.popitem(last=False)  # its files are closed with it
        return opened


def stamp_of(run: RunDir) -> tuple[object, ...]:
    """What tells whether a run changed: the sizes and times of its files."""
    found: list[object] = []
    names = ["run.json", "ended.json", "trials.jsonl", "part.json", run.verdicts().name]
    for path in (*(run.path / name for name in names), *run.observation_files()):
        try:
            about = os.stat(path)
            found.append((path.name, about.st_ino, about.st_size, about.st_mtime_ns))
        except OSError:
            found.append((path.name, None))
    return tuple(found)
