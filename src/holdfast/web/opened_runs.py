"""A project in the viewer: its list of runs, its notes, and opened runs that are valid until their files change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from holdfast.errors import UserError
from holdfast.folders import get_own_folder_of
from holdfast.runner.outcome import RunOutcome, load_run
from holdfast.store.history import build_stamp
from holdfast.store.run_folders import get_run_folder, is_damaged, is_run
from holdfast.store.rundir import RunDir, is_in_progress
from holdfast.web.address import is_run_id
from holdfast.web.live_run import LiveRun
from holdfast.web.notes import Notes
from holdfast.web.run_list import RunList

KEPT = 6
"""Cached runs: one of 100,000 cells takes about 50 MB."""
T = TypeVar("T")


class NotFound(UserError):
    """There is no such run, trial, rule or page."""

    default_code = "name-unknown"


class OpenedRun:
    """An opened run. Only one thread at a time may use it: its records share open files."""

    def __init__(self, outcome: RunOutcome, stamp: str, live: LiveRun | None = None) -> None:
        self.outcome = outcome
        self.live = live
        """The running run; None if it has ended or was killed."""
        self.stamp = stamp
        self.lock = threading.RLock()
        self.made: dict[str, bytes] = {}
        """Documents made from it, by name: a matrix is requested repeatedly."""


class OpenedRuns:
    """The most recently used runs."""

    def __init__(self, runs: Path, environ: Mapping[str, str]) -> None:
        self._runs = runs
        self._environ = environ
        self._open: OrderedDict[str, OpenedRun] = OrderedDict()
        self._lock = threading.Lock()
        self._opening: dict[str, threading.Lock] = {}
        self._live: dict[str, LiveRun] = {}

    def find_folder(self, id: str) -> RunDir:
        """Return the run's folder; raise NotFound if there is none."""
        path = get_run_folder(self._runs, id)
        if not is_run_id(id) or not (is_run(path) or is_damaged(path)):
            raise NotFound(f"there is no run {id}", hint="the list of runs shows the existing ones")
        return RunDir(path)

    def use(self, id: str, what: Callable[[OpenedRun], T]) -> T:
        """Use a run exclusively."""
        run = self.find_folder(id)
        with self._get_lock(id):  # two requests for one run read it once
            opened = self._open_run(run)
        with opened.lock:
            return what(opened)

    def close(self) -> None:
        with self._lock:
            for one in self._open.values():
                one.outcome.close()
            self._open.clear()

    def find_live(self, id: str) -> LiveRun | None:
        """Return the run, if it is running; None if it has ended or was killed."""
        run = self.find_folder(id)
        with self._get_lock(id):
            return self._follow(run)

    def _get_lock(self, id: str) -> threading.Lock:
        with self._lock:
            return self._opening.setdefault(id, threading.Lock())

    def _follow(self, run: RunDir) -> LiveRun | None:
        if not is_in_progress(run):
            self._live.pop(run.id, None)
            return None
        live = self._live.get(run.id)
        if live is None:
            while len(self._live) >= KEPT:
                self._live.pop(next(iter(self._live)), None)
            live = self._live[run.id] = LiveRun(run, self._environ)
        return live

    def _open_run(self, run: RunDir) -> OpenedRun:
        # A running run is valid until something new was read, and one that has ended until its files change.
        live = self._follow(run)
        if live is not None:
            with live.lock:
                live.update()
                stamp = f"{id(live)} {live.version}"
                return self._find_known(run, stamp) or self._cache_run(
                    run, OpenedRun(live.build_outcome(), stamp, live=live)
                )
        stamp = build_stamp(run.path)
        return self._find_known(run, stamp) or self._cache_run(
            run, OpenedRun(load_run(run, environ=self._environ), stamp)
        )

    def _find_known(self, run: RunDir, stamp: str) -> OpenedRun | None:
        with self._lock:
            known = self._open.get(run.id)
            if known is None or known.stamp != stamp:
                return None
            self._open.move_to_end(run.id)
            return known

    def _cache_run(self, run: RunDir, opened: OpenedRun) -> OpenedRun:
        with self._lock:
            self._open[run.id] = opened
            self._open.move_to_end(run.id)
            while len(self._open) > KEPT:
                self._open.popitem(last=False)  # its files are closed with it
        return opened


class Project:
    """The runs of one folder, while somebody looks at them."""

    def __init__(self, runs: Path, environ: Mapping[str, str]) -> None:
        self.runs = runs.absolute()
        self.environ = environ
        self.notes = Notes(get_own_folder_of(self.runs))
        self.list = RunList(self.runs)
        self.opened = OpenedRuns(self.runs, environ)

    @property
    def name(self) -> str:
        """The name of the project's folder."""
        return get_own_folder_of(self.runs.resolve()).parent.name

    def close(self) -> None:
        self.opened.close()
