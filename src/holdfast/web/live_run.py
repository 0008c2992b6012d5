"""Follows a run that another process is writing, through its files. It locks and writes nothing.

Whenever the files have changed, they are read and added up again, as for a run that has ended. The current calls of
trials are in their traces, which are written as they happen.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import zip_longest
from typing import Any

from msgspec import MsgspecError, Struct
from msgspec.structs import replace

from holdfast.model.codec import create_decoder
from holdfast.model.score import Cell
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.plan import build_plan
from holdfast.report import wording
from holdfast.report.page.cells import count_trials, mark_unfinished
from holdfast.runner.outcome import RunOutcome, conclude
from holdfast.runner.start import load_stored_spec
from holdfast.score import Tally
from holdfast.store.history import build_stamp
from holdfast.store.lines import read_lines
from holdfast.store.replay import replay_verdicts
from holdfast.store.rundir import RunDir, RunEnd
from holdfast.store.stored_records import RunRecords
from holdfast.store.traces import get_event_file, is_id

UNDER_WAY = 20
"""Running trials that are shown."""
LISTED = 100
"""Trials that ended since the last update and are listed one by one: those that did not pass first."""
SLOW_S, PAUSE = 0.5, 5
"""A reading that takes longer is followed by a pause of so many times its duration."""
_events = create_decoder(TraceEvent)


class LiveNews(Struct):
    """The events since the last update."""

    cells: list[Cell]
    trials: list[dict[str, Any]]


class LiveRun:
    """One running run. Only one thread at a time may use it."""

    def __init__(self, run: RunDir, environ: Mapping[str, str], clock: Callable[[], float] = time.time) -> None:
        self.lock = threading.RLock()
        self.version = 0
        """Increases with everything that is read."""
        self._run = run
        self._clock = clock
        self._manifest = run.read_manifest()
        self._spec, _ = load_stored_spec(run, self._manifest, None, environ)
        self._plan = build_plan(self._spec, self._manifest.options.select, sequential=self._manifest.options.auto)
        self._records, self._tally = RunRecords(run), Tally(self._spec, self._plan)
        self._stamp, self._wait_until = "", 0.0  # of the files; of the clock
        self._cells: list[Cell] = []
        self._changed: dict[int, Cell] = {}
        self._judged: set[int] = set()
        """The numbers of the trials that were judged by the last update."""
        self._ended: list[dict[str, Any]] = []
        self._done = self._failed = 0
        self._foreign: frozenset[str] = frozenset()

    def update(self) -> None:
        """Read the files again if they have changed."""
        began, stamp = time.monotonic(), build_stamp(self._run.path)
        if stamp == self._stamp or began < self._wait_until:
            return
        self._stamp = stamp
        self._records = RunRecords(self._run, self._spec.scenarios, lenient=True)
        self._tally = Tally(self._spec, self._plan)
        stored = replay_verdicts(self._records, self._plan, self._tally, keep_errors=True)
        self._done, self._foreign = stored.done, stored.foreign
        cells = list(self._tally.iter_cells())
        for place, (cell, before) in enumerate(zip_longest(cells, self._cells)):
            if cell != before and (before is not None or count_trials(cell)):
                self._changed[place] = cell
        self._cells = cells
        for number in stored.judged:
            if number not in self._judged:
                self._end_trial(number)
        self.version += 1
        took_s = time.monotonic() - began
        self._wait_until = began + took_s + (PAUSE * took_s if took_s > SLOW_S else 0.0)

    def _end_trial(self, number: int) -> None:
        """Note a trial that was judged, with the verdict that most needs explaining."""
        self._judged.add(number)
        trial, verdicts = self._records.read_trial(number), self._records.read_verdicts(number).values()
        order = (*wording.TROUBLE, "pass", "n/a")
        worst = min(verdicts, key=lambda one: order.index(one.outcome), default=None)
        self._failed += worst is not None and worst.outcome == "fail"
        self._ended.append(
            {
                "id": trial.id,
                "column": wording.format_head(trial.scenario.name, trial.params),
                "rule": worst.invariant if worst else "",
                "outcome": worst.outcome if worst else "",
                "reason": worst.reason if worst else "",
            }
        )

    def build_outcome(self) -> RunOutcome:
        """Return the run so far."""
        ended, options = RunEnd(False, self._compute_elapsed()), self._manifest.options
        concluded = conclude(
            self._run, self._spec, self._plan, self._tally, options, ended=ended, foreign=self._foreign
        )
        return replace(concluded, run=replace(concluded.run, running=True))

    def build_progress(self) -> dict[str, Any]:
        """Return the progress in numbers."""
        spending = (self._tally.spending, self._tally.control_spending)
        known = [
            spent.cost_usd for spent in (one.build_result() for one in spending) if spent and spent.cost_usd is not None
        ]
        return {
            "done": self._done,
            "total": len(self._plan.trials),
            "at_most": self._plan.sequential,
            "failed": self._failed,
            "elapsed_s": self._compute_elapsed(),
            "cost_usd": sum(known) if known else None,
            "under_way": list(self._list_running()),
        }

    def take_news(self) -> LiveNews:
        """Return everything that happened since the last call."""
        cells = [mark_unfinished(cell) for cell in self._changed.values()]
        trials = sorted(self._ended, key=lambda one: one["outcome"] in ("pass", "n/a"))
        self._changed.clear()
        self._ended.clear()
        return LiveNews(cells, trials[:LISTED])

    def get_pending(self, id: str) -> Trial | None:
        """Return a trial that was begun and has no stored observation yet."""
        with self.lock:
            number = self._records.ids.find(id)
            return None if number is None or self._records.is_observed(number) else self._records.read_trial(number)

    def _list_running(self) -> Iterator[dict[str, Any]]:
        """Yield the trials that have made a call and have not ended; one without a call cannot be distinguished from a
        waiting one.
        """
        count = 0
        for number in range(len(self._records.ids)):
            if self._records.is_observed(number):
                continue
            trial = self._records.read_trial(number)
            calls = self.read_calls(trial.id)
            if calls and self._records.ids.find(trial.id) == number:  # otherwise it was begun again
                where, last = wording.format_head(trial.scenario.name, trial.params), calls[-1]
                call = f"{last.plane} {last.tool}".strip()
                yield {"trial": trial.id, "scenario": where, "calls": len(calls), "last_call": call}
                count += 1
                if count == UNDER_WAY:
                    return

    def read_calls(self, id: str) -> list[TraceEvent]:
        """Return the calls of a running trial so far."""
        try:
            lines = list(read_lines(get_event_file(self._run.path / "traces", id))) if is_id(id) else []
            events = [_events.decode(line) for line in lines]
        except (MsgspecError, ValueError, RecursionError, OSError):  # reported when the complete run is read
            return []
        return sorted(events, key=lambda event: event.ts)

    def _compute_elapsed(self) -> float:
        try:
            began = datetime.fromisoformat(self._manifest.started).timestamp()
        except ValueError:
            return 0.0
        return float(max(0, int(self._clock() - began)))
