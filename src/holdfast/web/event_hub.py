"""Listeners and their events: the list changed, and the progress of a run.

A run is followed while somebody listens to it, once for all listeners. A client that does not read loses the
connection: the page reconnects and requests everything again.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from typing import Any

from holdfast.model.score import Cell
from holdfast.report import wording
from holdfast.report.page.values import encode_json
from holdfast.store.rundir import RunDir, is_in_progress
from holdfast.web.opened_runs import OpenedRuns
from holdfast.web.run_list import RunList

LISTENERS = 64
"""Open connections; further clients are asked to retry."""
LOOK_S = 0.25
GLANCE_S = 0.5
"""Seconds between looks at the list."""
NAMED = 200
"""Runs named in one event."""
QUEUED = 256


def encode_event(name: str, data: Any) -> bytes:
    """Return one event in the browser's format. The JSON contains no line breaks."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encode_json(data))


class Listening:
    """One connection and its queue."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.queue: asyncio.Queue[bytes] = asyncio.Queue(QUEUED)
        self.over = asyncio.Event()

    def send(self, data: bytes) -> None:
        try:
            self.queue.put_nowait(data)
        except asyncio.QueueFull:
            self.over.set()


class EventHub:
    """Sends events to the listeners of one project."""

    def __init__(self, opened: OpenedRuns, runs: RunList, workers: Executor) -> None:
        self._opened, self._runs = opened, runs
        self._workers = workers
        self._listening: set[Listening] = set()
        self._following: dict[str, asyncio.Task[None]] = {}
        self._watching: asyncio.Task[None] | None = None
        """Looks at the list while anybody listens."""
        self._last: dict[str, bytes] = {}
        """The last progress sent for each run: it is sent again when it changes or a new listener joins."""

    def add_listener(self, run: str) -> Listening | None:
        """Add a listener; None if there are too many."""
        if len(self._listening) >= LISTENERS:
            return None
        one = Listening(run)
        self._listening.add(one)
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch_list())
        self._last.pop(run, None)
        if run and run not in self._following:
            self._following[run] = asyncio.create_task(self._follow_run(run))
        return one

    def remove_listener(self, one: Listening) -> None:
        self._listening.discard(one)
        if not self._listening and self._watching is not None:
            self._watching.cancel()
            self._watching = None
        if one.run and not self._find_listeners(one.run):
            task = self._following.pop(one.run, None)
            if task is not None:
                task.cancel()

    async def _watch_list(self) -> None:
        """Report runs that are new, changed or gone."""
        loop = asyncio.get_running_loop()
        while True:
            if ids := await loop.run_in_executor(self._workers, self._runs.take_changed):
                for one in self._listening:
                    one.send(encode_event("runs", {"ids": ids[:NAMED]}))
            await asyncio.sleep(GLANCE_S)

    async def close(self) -> None:
        tasks = [*self._following.values(), *([self._watching] if self._watching else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _find_listeners(self, run: str) -> list[Listening]:
        return [one for one in self._listening if one.run == run]

    async def _follow_run(self, run: str) -> None:
        """Read the run's files repeatedly until it has ended."""
        loop = asyncio.get_running_loop()
        went_on = False
        while True:
            try:
                events = await loop.run_in_executor(self._workers, self._collect_events, run)
            except Exception as broken:  # whatever it is, other runs are still followed
                events = self._skip_repeated(
                    run, encode_event("progress", {"state": "unreadable", "note": str(broken)})
                )
            if events is None:
                if went_on:
                    self._runs.request_scan()  # it still has the old state
                    for one in self._find_listeners(run):
                        one.send(encode_event("ended", {"run": run}))
                went_on = False
                await asyncio.sleep(4 * LOOK_S)
                continue
            went_on = True
            for one in self._find_listeners(run):
                for data in events:
                    one.send(data)
            await asyncio.sleep(LOOK_S)

    def _skip_repeated(self, run: str, progress: bytes) -> list[bytes]:
        """Return the progress, if it differs from the last one sent."""
        # Nothing is sent while nothing changes: the page would draw the same numbers again four times a second.
        if self._last.get(run) == progress:
            return []
        self._last[run] = progress
        return [progress]

    def _collect_events(self, id: str) -> list[bytes] | None:
        """Return the events to send about a run now; None if it is not running."""
        run = self._opened.find_folder(id)
        now = _find_running_part(run)
        live = self._opened.find_live(now.id) if now is not None else None
        if now is None or live is None:
            # Between two parts nothing is written, but the run goes on.
            between = encode_event("progress", {"state": "running", "part": ""})
            return self._skip_repeated(id, between) if is_in_progress(run) else None
        with live.lock:
            live.update()
            news, progress = live.take_news(), live.build_progress()
        part = now.path.name if now.id != run.id else ""
        now_at = encode_event("progress", {"state": "running", "part": part, **progress})
        changed = self._skip_repeated(id, now_at)
        if part:
            return changed
        if news.cells:
            changed.append(encode_event("cells", {"changed": [_build_cell(cell) for cell in news.cells]}))
        changed += [encode_event("trial", one) for one in news.trials]
        return changed


def _find_running_part(run: RunDir) -> RunDir | None:
    """Return the run itself, or the part of it that is being written."""
    if not run.read_manifest().parts:
        return run
    return next((part for part in run.parts if is_in_progress(part)), None)


def _build_cell(cell: Cell) -> dict[str, Any]:
    return {
        "rule": cell.invariant,
        "column": wording.format_column(cell),
        "outcome": cell.outcome,
        "tally": wording.format_tally(cell),
        "flags": ", ".join(wording.list_marks(cell)),
        "reason": cell.reason,
    }
