"""All runs of a project, kept up to date by one thread while somebody looks.

The index is the history of the project (`history.db`). What is known is shown at once; what is not indexed yet follows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from holdfast.errors import HoldfastError
from holdfast.runner.history import history
from holdfast.runner.whole import ORDER
from holdfast.store.history import History
from holdfast.store.past_run import PastRun

SCAN_S = 3.0
"""Between two looks at the folders, while somebody looks at the page."""
FIRST_S = 0.7
"""So long the first reader waits for what is not indexed yet."""
_PUBLISH_S = 1.0
_LOOKED_S = 30.0
"""Nobody asked for so long: nobody looks."""


class KnownRuns(Struct, frozen=True):
    """The runs as of one moment, the newest first; parts follow their runs."""

    runs: tuple[PastRun, ...] = ()
    by_id: dict[str, PastRun] = {}
    left: int = 0
    """Runs that are not indexed yet."""
    trouble: str = ""
    """Why the list may be incomplete."""
    version: int = 0

    @property
    def whole(self) -> list[PastRun]:
        """Without parts."""
        return [run for run in self.runs if "/" not in run.id]

    def parts(self, id: str) -> list[PastRun]:
        """The parts of a run, in the order in which they are run."""
        return [self.by_id[part] for part in (f"{id}/{name}" for name in ORDER) if part in self.by_id]


class RunList:
    """Reads the folders in a thread of its own, which ends with `close`."""

    def __init__(self, runs: Path, *, changed: Callable[[], None] = lambda: None) -> None:
        self._folder = runs
        self._changed = changed
        self._known = KnownRuns()
        self._wake = threading.Event()
        self._done = threading.Event()
        self._first = threading.Event()
        self._over = False
        self._asked_at = time.monotonic()
        self._published_at = 0.0
        self._thread = threading.Thread(target=self._keep, name="run-list", daemon=True)
        self._thread.start()

    def known(self) -> KnownRuns:
        """What is known by now; the first who asks waits a moment for it."""
        self._asked_at = time.monotonic()
        if not self._done.is_set():
            self._done.wait(FIRST_S)
            self._first.wait()
        return self._known

    def look(self) -> None:
        """Looks at the folders soon: somebody knows that something changed."""
        self._asked_at = time.monotonic()
        self._wake.set()

    def close(self) -> None:
        self._over = True
        self._wake.set()
        self._thread.join(timeout=5)

    def _keep(self) -> None:
        while not self._over:
            try:
                with history(self._folder, self._tell, self._step) as found:
                    self._follow(found)
            except (HoldfastError, OSError) as broken:
                self._publish((), trouble=str(broken))
                self._wake.wait(SCAN_S)
                self._wake.clear()
            except _Over:
                return

    def _follow(self, found: History) -> None:
        self._publish(tuple(found.runs()))
        self._done.set()
        while not self._over:
            self._wake.wait(SCAN_S)
            self._wake.clear()
            if self._over or time.monotonic() - self._asked_at > _LOOKED_S:
                continue
            if found.update(self._step):
                self._publish(tuple(found.runs()))

    def _step(self, found: History, left: int) -> None:
        """Shows what is known while the rest is read."""
        if self._over:
            raise _Over
        now = time.monotonic()
        if not self._first.is_set() or now - self._published_at > _PUBLISH_S:
            self._publish(tuple(found.runs()), left)

    def _publish(self, runs: tuple[PastRun, ...], left: int = 0, trouble: str = "") -> None:
        self._known = KnownRuns(runs, {run.id: run for run in runs}, left, trouble, self._known.version + 1)
        self._published_at = time.monotonic()
        self._first.set()
        self._changed()

    def _tell(self, message: str) -> None:
        """Of a file that was damaged: the list is whole all the same."""


class _Over(Exception):
    """The viewer ends while runs are being read."""
