"""All runs of a project, updated by one thread while somebody looks.

The index is the project's history (`.holdfast/history`). Runs with a row there are shown immediately; the others
follow.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from holdfast.errors import HoldfastError
from holdfast.runner.past.history import SEVERAL, open_history
from holdfast.runner.whole import ORDER
from holdfast.store.history import History
from holdfast.store.past_run import PastRun
from holdfast.store.run_folders import get_run_folder, is_written, list_parts

GLANCE_S = 0.5
"""Seconds between quick checks: the folder itself, and runs that have not ended."""
SCAN_S = 5.0
"""Seconds between full scans; more if a scan takes long."""
FIRST_S = 0.7
"""Seconds that the first reader waits for runs that are not indexed yet."""
EMPTY_S = 10.0
"""The same while no run is known."""
GLANCED = 50
"""Unfinished runs that a quick check covers: the others were killed long ago."""
_PUBLISH_S = 1.0
_LOOKED_S = 30.0
"""Without a request for this long, nobody is looking."""


TellChanged = Callable[[list[str]], None]
"""Receives, from another thread, the ids of runs that are new, changed or gone."""


class KnownRuns(Struct, frozen=True):
    """The runs at one moment, newest first; parts follow their runs."""

    runs: tuple[PastRun, ...] = ()
    by_id: dict[str, PastRun] = {}
    left: int | None = 0
    """Runs that are not indexed yet; None: not counted yet."""
    trouble: str = ""
    """Why the list could not be updated."""

    @property
    def whole(self) -> list[PastRun]:
        """The runs without parts."""
        return [run for run in self.runs if "/" not in run.id]

    def list_parts(self, id: str) -> list[PastRun]:
        """Return the parts of a run, in the order in which they run."""
        return [self.by_id[part] for part in (f"{id}/{name}" for name in ORDER) if part in self.by_id]


class RunList:
    """Reads the folders in its own thread, which ends with `close`."""

    def __init__(self, runs: Path, *, changed: TellChanged = lambda ids: None) -> None:
        self._folder = runs
        self._changed = changed
        self._known = KnownRuns()
        self._wake = threading.Event()
        self._done = threading.Event()
        self._first = threading.Event()
        self._over = False
        self._asked_at = time.monotonic()
        self._publish_at = 0.0
        self._trouble = ""
        self._thread = threading.Thread(target=self._maintain, name="run-list", daemon=True)
        self._thread.start()

    def get_known(self) -> KnownRuns:
        """Return the runs known by now; the first caller waits a moment."""
        self._asked_at = time.monotonic()
        if not self._done.is_set():
            self._done.wait(FIRST_S)
            self._first.wait(EMPTY_S)
        return self._known

    def request_scan(self) -> None:
        """Scan the folders now, because something changed."""
        self._asked_at = time.monotonic()
        self._wake.set()

    def note_listener(self) -> None:
        """Note that a client is still listening."""
        self._asked_at = time.monotonic()

    def close(self) -> None:
        self._over = True
        self._wake.set()
        self._thread.join(timeout=0.5)  # a thread that is reading a large run ends with the process

    def _maintain(self) -> None:
        while not self._over:
            try:
                self._follow(open_history(self._folder, self._publish_step))
            except _Closed:
                return
            except Exception as broken:  # whatever it is, the page shows it together with the last known runs
                self._trouble = (
                    str(broken) if isinstance(broken, HoldfastError) else f"the runs cannot be read: {broken}"
                )
                self._publish(self._known.runs)
                self._wake.wait(SCAN_S)
                self._wake.clear()

    def _follow(self, history: History) -> None:
        """Follow until the viewer ends, or a missing folder of runs appears."""
        self._publish(tuple(history.read_runs()))
        self._done.set()
        exists = self._folder.is_dir()
        scanned_at, glance = time.monotonic(), self._build_fingerprint()
        every = SCAN_S
        while not self._over and exists == self._folder.is_dir():
            woken = self._wake.wait(GLANCE_S)
            self._wake.clear()
            began = time.monotonic()
            if self._over or began - self._asked_at > _LOOKED_S:
                continue
            # Two speeds: a glance every half second at what can change within a run, and a full scan of all folders. A
            # scan that takes long is followed by a pause of twenty times that, so scanning never takes more than a
            # twentieth of the time.
            now = self._build_fingerprint()
            if not woken and now == glance and began - scanned_at < every:
                continue
            if history.update(self._publish_step):
                self._publish(tuple(history.read_runs()))
            self._report_changes(sorted({id for id, _ in now[1] ^ glance[1]}))
            scanned_at = time.monotonic()
            every, glance = max(SCAN_S, 20 * (scanned_at - began)), self._build_fingerprint()

    def _build_fingerprint(self) -> tuple[int, frozenset[tuple[str, str]]]:
        """Return a fingerprint that changes when a run begins, ends or is killed."""
        try:
            folder = os.stat(self._folder).st_mtime_ns
        except OSError:
            folder = 0
        unended = [run for run in self._known.runs if not run.ended or run.exit_code == 2][:GLANCED]
        return folder, frozenset((run.id, self._read_state(run)) for run in unended)

    def _read_state(self, run: PastRun) -> str:
        path = get_run_folder(self._folder, run.id)
        ends = [os.path.isfile(path / name) for name in ("ended.json", "overall.json")]
        return f"{is_written(path)}{ends}{len(list_parts(path)) if run.part == SEVERAL else 0}"

    def _publish_step(self, history: History, left: int | None) -> None:
        """Publish what is known while the rest is read."""
        if self._over:
            raise _Closed
        began = time.monotonic()
        if not self._first.is_set() or (left and began > self._publish_at):
            self._publish(tuple(history.read_runs()), left)
            duration_s = time.monotonic() - began
            self._publish_at = began + max(_PUBLISH_S, 10 * duration_s)  # the rest of the time is for reading

    def _publish(self, runs: tuple[PastRun, ...], left: int | None = 0) -> None:
        before, by_id = self._known.by_id, {run.id: run for run in runs}
        changed = [id for id in {**by_id, **before} if by_id.get(id) != before.get(id)]
        self._known = KnownRuns(runs, by_id, left, self._trouble)
        if runs or left == 0:
            self._first.set()
        self._report_changes(changed)

    def _report_changes(self, ids: list[str]) -> None:
        if ids:
            self._changed(ids)


class _Closed(Exception):
    """The viewer ends while runs are being read."""
