"""Who listens, and what they are told: that the list changed, and how a run goes on.

A run is followed for as long as somebody listens to it, once for all who do. Who does not read loses the connection:
the page comes back, and asks for what it shows anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from holdfast.model.score import Cell
from holdfast.report import wording
from holdfast.report.page.values import json_bytes
from holdfast.store.rundir import RunDir, under_way
from holdfast.web.opened_runs import OpenedRuns

LISTENERS = 64
"""Connections that are held open at once; who comes later is asked to come back."""
LOOK_S = 0.25
QUEUED = 256


def event(name: str, data: Any) -> bytes:
    """One event as the browser reads it. JSON has no line breaks of its own."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), json_bytes(data))


class Listening:
    """One connection: what it is to be sent."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.queue: asyncio.Queue[bytes] = asyncio.Queue(QUEUED)
        self.over = asyncio.Event()

    def tell(self, data: bytes) -> None:
        try:
            self.queue.put_nowait(data)
        except asyncio.QueueFull:
            self.over.set()


class EventHub:
    """Tells listeners of one project."""

    def __init__(self, opened: OpenedRuns, workers: Executor, ended: Callable[[], None]) -> None:
        """`ended` is called when a run that was followed has ended: the list has it as it was."""
        self._opened = opened
        self._workers = workers
        self._run_ended = ended
        self._listening: set[Listening] = set()
        self._following: dict[str, asyncio.Task[None]] = {}
        self._last: dict[str, bytes] = {}
        """The progress of each run as it was told: it is told again when it is another, or somebody new listens."""

    def join(self, run: str) -> Listening | None:
        """Another listener; None if there are too many."""
        if len(self._listening) >= LISTENERS:
            return None
        one = Listening(run)
        self._listening.add(one)
        self._last.pop(run, None)
        if run and run not in self._following:
            self._following[run] = asyncio.create_task(self._follow(run))
        return one

    def leave(self, one: Listening) -> None:
        self._listening.discard(one)
        if one.run and not self._hearing(one.run):
            task = self._following.pop(one.run, None)
            if task is not None:
                task.cancel()

    def list_changed(self, ids: list[str]) -> None:
        for one in self._listening:
            one.tell(event("runs", {"ids": ids}))

    async def close(self) -> None:
        tasks = list(self._following.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _hearing(self, run: str) -> list[Listening]:
        return [one for one in self._listening if one.run == run]

    async def _follow(self, run: str) -> None:
        """Looks at the run's files again and again until it has ended."""
        loop = asyncio.get_running_loop()
        went_on = False
        while True:
            try:
                events = await loop.run_in_executor(self._workers, self._look, run)
            except Exception as broken:  # whatever it is, others are followed on
                events = self._unless_told(run, event("progress", {"state": "unreadable", "note": str(broken)}))
            if events is None:
                if went_on:
                    self._run_ended()
                    for one in self._hearing(run):
                        one.tell(event("ended", {"run": run}))
                went_on = False
                await asyncio.sleep(4 * LOOK_S)
                continue
            went_on = True
            for one in self._hearing(run):
                for data in events:
                    one.tell(data)
            await asyncio.sleep(LOOK_S)

    def _unless_told(self, run: str, progress: bytes) -> list[bytes]:
        """Progress, if it is another than was told last."""
        if self._last.get(run) == progress:
            return []
        self._last[run] = progress
        return [progress]

    def _look(self, id: str) -> list[bytes] | None:
        """What is to be told of a run now; None if it is not under way."""
        run = self._opened.folder(id)
        now = _part_under_way(run)
        live = self._opened.live(now.id) if now is not None else None
        if now is None or live is None:
            between = event("progress", {"state": "running", "part": ""})
            return self._unless_told(id, between) if under_way(run) else None
        with live.lock:
            live.look()
            news, progress = live.news(), live.progress()
        part = now.path.name if now.id != run.id else ""
        now_at = event("progress", {"state": "running", "part": part, **progress})
        told = self._unless_told(id, now_at)
        if part:
            return told
        if news.cells:
            told.append(event("cells", {"changed": [_cell(cell) for cell in news.cells]}))
        told += [event("trial", one) for one in news.trials]
        return told


def _part_under_way(run: RunDir) -> RunDir | None:
    """The run itself, or that part of it which is being written."""
    if not run.manifest().parts:
        return run
    return next((part for part in run.parts if under_way(part)), None)


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "rule": cell.invariant,
        "column": wording.column(cell),
        "outcome": cell.outcome,
        "tally": wording.tally(cell),
        "flags": ", ".join(wording.marks(cell)),
        "reason": cell.reason,
    }
