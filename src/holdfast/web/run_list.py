"""All runs of a project, updated whenever somebody looks.

The index is the project's history (`.holdfast/history`). Runs with a row there are shown immediately; the others
follow, some with each look.
"""

from __future__ import annotations

import os
import threading
import time
from math import inf
from pathlib import Path

from msgspec import Struct

from holdfast.errors import HoldfastError
from holdfast.runner.past.history import SEVERAL, read_past_run
from holdfast.runner.whole import ORDER
from holdfast.store.history import History
from holdfast.store.past_run import PastRun
from holdfast.store.run_folders import get_run_folder, is_written, list_parts

SCAN_S = 5.0
"""Seconds between full scans; more if a scan takes long."""
STEP_S = 0.7
"""Seconds of reading runs that are not indexed yet, per look."""
GLANCED = 50
"""Unfinished runs that a look covers: the others were killed long ago."""


class KnownRuns(Struct, frozen=True):
    """The runs at one moment, newest first; parts follow their runs."""

    runs: tuple[PastRun, ...] = ()
    by_id: dict[str, PastRun] = {}
    left: int = 0
    """Runs that are not indexed yet."""
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
    """Reads the folders when it is asked. Call it in a thread."""

    def __init__(self, runs: Path) -> None:
        self._folder = runs
        self._history: History | None = None
        self._known = KnownRuns()
        self._lock = threading.Lock()
        self._scanned_at, self._pause_s = -inf, SCAN_S
        self._glance: tuple[int, frozenset[tuple[str, str]]] = (0, frozenset())
        self._changed: set[str] = set()

    def get_known(self) -> KnownRuns:
        """Return the runs, updated if something has changed; while another thread updates them, as they were."""
        if self._lock.acquire(blocking=self._history is None):
            try:
                self._refresh()
            finally:
                self._lock.release()
        return self._known

    def request_scan(self) -> None:
        """Let the next look scan all folders, because something changed."""
        self._scanned_at = -inf

    def take_changed(self) -> list[str]:
        """Return the ids of runs that are new, changed or gone since the last call."""
        self.get_known()
        with self._lock:
            changed, self._changed = sorted(self._changed), set()
        return changed

    def _refresh(self) -> None:
        # Two speeds: each look glances at what can change within a run, and all folders are scanned from time to time.
        # A scan that takes long is followed by a pause of twenty times that, so scanning never takes more than a
        # twentieth of the time.
        began, glance = time.monotonic(), self._build_fingerprint()
        if glance == self._glance and not self._known.left and began - self._scanned_at < self._pause_s:
            return
        is_first = self._history is None
        try:
            self._history = self._history or History(self._folder, read_past_run)
            left = self._history.update(STEP_S)
            self._publish(tuple(self._history.read_runs()), left, "")
        except Exception as broken:  # whatever it is, the page shows it together with the last known runs
            trouble = str(broken) if isinstance(broken, HoldfastError) else f"the runs cannot be read: {broken}"
            self._publish(self._known.runs, 0, trouble)
        self._changed |= {id for id, _ in glance[1] ^ self._glance[1]}
        if is_first:
            self._changed.clear()  # nobody has seen an earlier list
        self._scanned_at = time.monotonic()
        self._pause_s = max(SCAN_S, 20 * (self._scanned_at - began))
        self._glance = self._build_fingerprint()

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

    def _publish(self, runs: tuple[PastRun, ...], left: int, trouble: str) -> None:
        before, by_id = self._known.by_id, {run.id: run for run in runs}
        self._changed |= {id for id in {**by_id, **before} if by_id.get(id) != before.get(id)}
        self._known = KnownRuns(runs, by_id, left, trouble)
