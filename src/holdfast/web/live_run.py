"""Follows a run that another process is writing, through its files. It locks and writes nothing.

Each update reads what was added since the last, and adds it up as the run itself does. The current calls of trials are
in their traces, which are written as they happen.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import MsgspecError, Struct
from msgspec.structs import replace

from holdfast.model.codec import create_decoder
from holdfast.model.observation import Observation
from holdfast.model.score import Cell
from holdfast.model.trace import TraceEvent
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.plan import build_plan
from holdfast.report import wording
from holdfast.report.page.cells import mark_unfinished
from holdfast.runner.outcome import RunOutcome, conclude
from holdfast.runner.start import load_stored_spec
from holdfast.score import Tally
from holdfast.store.blobs import unpack
from holdfast.store.lines import read_lines
from holdfast.store.planned import PlannedTrials
from holdfast.store.record import TrialRecord
from holdfast.store.rundir import RunDir, RunEnd
from holdfast.store.traces import get_event_file, is_id, read_details
from holdfast.web.file_tail import FileReplaced, FileTail

UNDER_WAY = 20
"""Running trials that are shown."""
LISTED = 100
"""Trials that ended since the last update and are listed one by one: those that did not pass first."""
_trials, _verdicts, _events = create_decoder(TrialRecord), create_decoder(Verdict), create_decoder(TraceEvent)
_BROKEN = (MsgspecError, ValueError, RecursionError, OSError)


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
        self._planned = PlannedTrials(self._plan)
        self._scenarios = {scenario.name: scenario for scenario in self._spec.scenarios}
        self._restart(keep_errors=True)

    def update(self) -> None:
        """Read what was added."""
        try:
            self._read()
        except FileReplaced:
            self._restart(keep_errors=self._keep_errors)
            self._read()
        except _RunAgain:
            self._restart(keep_errors=False)
            self._read()

    def build_outcome(self) -> RunOutcome:
        """Return the run so far."""
        ended = RunEnd(False, self._compute_elapsed())
        concluded = conclude(self._run, self._spec, self._plan, self._tally, self._manifest.options, ended=ended)
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
        cells = [mark_unfinished(self._tally.build_cell(position)) for position in self._changed]
        trials = sorted(self._ended, key=lambda one: one["outcome"] in ("pass", "n/a"))
        self._changed.clear()
        self._ended.clear()
        return LiveNews(cells, trials[:LISTED])

    def get_pending(self, id: str) -> Trial | None:
        """Return a trial that was begun and has no stored observation yet."""
        return self._pending.get(id)

    # -- reading --------------------------------------------------------------------------------
    def _restart(self, *, keep_errors: bool) -> None:
        """`keep_errors`: trials with harness errors count; not if a resumed run repeats them."""
        self._keep_errors = keep_errors
        self._tally = Tally(self._spec, self._plan)
        self._trial_file = FileTail(self._run.path / "trials.jsonl")
        self._verdict_file = FileTail(self._run.get_verdict_file())
        self._observation_files: dict[Path, FileTail] = {}
        self._pending: dict[str, Trial] = {}
        self._observations: dict[str, Observation] = {}
        self._verdicts_by_trial: dict[str, dict[str, Verdict]] = {}
        self._settled: set[str] = set()
        self._broken: set[str] = set()
        self._changed: dict[int, None] = {}
        self._ended: list[dict[str, Any]] = []
        self._done = self._failed = 0

    def _read(self) -> None:
        # Files are read in the reverse order of writing, so whatever a verdict refers to has been written by then.
        verdicts = self._verdict_file.read_lines()
        observations = [
            line for path in self._run.list_observation_files() for line in self._get_tail(path).read_lines()
        ]
        for line in self._trial_file.read_lines():
            self._add_trial(line)
        for line in observations:
            self._add_observation(line)
        for line in verdicts:
            self._judge(line)
        for id in [id for id in self._verdicts_by_trial if id in self._observations]:
            self._judge_trial(id)
        self.version += bool(verdicts or observations)

    def _get_tail(self, path: Path) -> FileTail:
        return self._observation_files.setdefault(path, FileTail(path))

    def _add_trial(self, line: bytes) -> None:
        record = _decode(_trials.decode, line)
        if record is None or record.id in self._settled or not record.task.turns:
            return
        trial = record.build_trial(self._scenarios)
        if trial.kind == "contract" and not self._planned.has_trial(trial):
            return  # from another spec: the resume was forced
        self._pending[trial.id] = trial

    def _add_observation(self, line: bytes) -> None:
        observation = _decode(lambda data: unpack(data, self._run.path / "blobs"), line)
        if observation is None:
            return
        # A trial that counted as a harness error was observed again: the run was resumed, and its errors no longer
        # count.
        if observation.trial in self._broken:
            raise _RunAgain
        trial = self._pending.get(observation.trial)
        if trial is None or (observation.error and not self._keep_errors):
            return
        observation = read_details(self._run, observation)
        if trial.kind == "control":
            self._tally.note_trial(trial, observation)
            self._pending.pop(trial.id)
            self._settled.add(trial.id)
            return
        if trial.id not in self._observations:
            self._done += 1
        self._observations[trial.id] = observation
        if not self._plan.get_rules(trial):
            self._judge_trial(trial.id)

    def _judge(self, line: bytes) -> None:
        verdict = _decode(_verdicts.decode, line)
        if verdict is not None and verdict.trial not in self._settled:
            self._verdicts_by_trial.setdefault(verdict.trial, {})[verdict.invariant] = verdict

    def _judge_trial(self, id: str) -> None:
        trial, observation, by_rule = self._pending[id], self._observations[id], self._verdicts_by_trial.get(id, {})
        rules = self._plan.get_rules(trial)
        if any(rule.id not in by_rule for rule in rules):
            return  # the others follow
        verdicts = [by_rule[rule.id] for rule in rules]
        self._tally.add_trial(trial, observation, verdicts)
        number = self._plan.get_params_index(trial.params)
        self._changed |= {self._plan.get_position(rule.id, trial.scenario.name, number): None for rule in rules}
        self._settled.add(id)
        if observation.error:
            self._broken.add(id)
        self._failed += any(one.outcome == "fail" for one in verdicts)
        self._ended.append(_build_ended_trial(trial, verdicts))
        del self._pending[id], self._observations[id]
        self._verdicts_by_trial.pop(id, None)

    # -- running trials -------------------------------------------------------------------------
    def _list_running(self) -> Iterator[dict[str, Any]]:
        """Yield the trials that have made a call and have not ended; one without a call cannot be distinguished from a
        waiting one.
        """
        count = 0
        for id, trial in self._pending.items():
            if id in self._observations or not is_id(id):
                continue
            calls = self.read_calls(id)
            if calls:
                last = calls[-1]
                where = wording.format_head(trial.scenario.name, trial.params)
                call = f"{last.plane} {last.tool}".strip()
                yield {"trial": id, "scenario": where, "calls": len(calls), "last_call": call}
                count += 1
                if count == UNDER_WAY:
                    return

    def read_calls(self, id: str) -> list[TraceEvent]:
        """Return the calls of a running trial so far."""
        try:
            lines = list(read_lines(get_event_file(self._run.path / "traces", id)))
        except OSError:
            return []
        events = (_decode(_events.decode, line) for line in lines)
        return sorted((event for event in events if event is not None), key=lambda event: event.ts)

    def _compute_elapsed(self) -> float:
        try:
            began = datetime.fromisoformat(self._manifest.started).timestamp()
        except ValueError:
            return 0.0
        return float(max(0, int(self._clock() - began)))


class _RunAgain(Exception):
    """A trial with a harness error is repeated: the run was resumed."""


def _decode(decode: Callable[[bytes], Any], line: bytes) -> Any:
    """Decode a line; None if it is not a record, which is reported when the complete run is read."""
    try:
        return decode(line)
    except _BROKEN:
        return None


def _build_ended_trial(trial: Trial, verdicts: list[Verdict]) -> dict[str, Any]:
    """Return a trial that has ended, with the verdict that most needs explaining."""
    order = (*wording.TROUBLE, "pass", "n/a")
    worst = min(verdicts, key=lambda one: order.index(one.outcome), default=None)
    return {
        "id": trial.id,
        "column": wording.format_head(trial.scenario.name, trial.params),
        "rule": worst.invariant if worst else "",
        "outcome": worst.outcome if worst else "",
        "reason": worst.reason if worst else "",
    }
