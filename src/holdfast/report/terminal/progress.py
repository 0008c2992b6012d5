"""The progress of a run: counters for listeners, cheap enough for every event."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import NamedTuple, TextIO

from holdfast.model import events
from holdfast.model.score import Cell
from holdfast.model.spec import Spec
from holdfast.report import wording
from holdfast.report.calls import format_usage_so_far
from holdfast.report.safe import to_one_line
from holdfast.report.terminal.matrix import MAX_ROWS, Grid, build_face
from holdfast.report.wording import SIGNS, format_column, format_tally, list_marks
from holdfast.score.run_totals import SpendingTally

_PULSE_S = 30.0
"""Seconds after which a pipe gets another sign of life."""


class Plain:
    """Writes the header and the progress from time to time; with `verbose` each cell as it is decided."""

    def __init__(self, stream: TextIO, *, verbose: bool = False, clock: Callable[[], float] = monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._cells = verbose
        self._progress = Progress()
        self._next = clock() + _PULSE_S

    def __call__(self, event: events.Event) -> None:
        self._progress(event)
        if isinstance(event, events.RunStarted):
            # A session may prove nothing although each of its rules passes, so its cells are not listed.
            self._cells = self._cells and event.spec.part != "replay"
            self._write(to_one_line(self._progress.header) + "\n")
            self._next = self._clock() + _PULSE_S
        elif isinstance(event, events.CellDecided) and self._cells:
            self._write(format_line(event.cell))
        elif isinstance(event, events.TrialEnded):
            self.tick()

    def tick(self) -> None:
        """Write the progress if nothing was written for a while."""
        if self._clock() >= self._next:
            self._next = self._clock() + _PULSE_S
            done = self._progress
            self._write(f"  {done.done} of {wording.format_count(done.total, 'trial')}, {done.failed} failed")

    def close(self) -> None:
        """Flush everything written."""
        self._stream.flush()

    def _write(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()


def format_line(cell: Cell) -> str:
    """`✘ fail      always-cite-source · llm-degraded  0/2, flaky  nothing matches …`."""
    start = (
        f"{SIGNS[cell.outcome]} {cell.outcome:<8}  {to_one_line(cell.invariant)} · {to_one_line(format_column(cell))}"
    )
    facts = ", ".join(filter(None, (format_tally(cell), *list_marks(cell))))
    reason = "" if cell.outcome in ("pass", "n/a") else to_one_line(cell.reason)
    return "  ".join(filter(None, (start, facts, reason)))


_ISOLATION = {"fresh": "a fresh process each", "worker": "reused worker processes", "inline": "inline"}


def format_header(event: events.RunStarted) -> str:
    """`Finance Agent · 3 rules × 3 scenarios · 14 trials · seed 7 · fresh process each, 4 at a time`."""
    spec = event.spec
    settings = f" × {len(spec.params)} params" if len(spec.params) > 1 else ""
    shape = (
        f"{wording.format_count(event.rules, 'rule')} × {wording.format_count(event.scenarios, 'scenario')}{settings}"
    )
    resumed = f", {event.done} already run" if event.done else ""
    budget = "up to " if spec.part == "hunt" else ""
    trials = (
        f"{budget}{wording.format_count(event.trials, 'trial')}{resumed}"
        if event.trials or not budget
        else "known causes only"
    )
    place = f"{_describe_place(spec)}, {event.concurrency} at a time"
    return " · ".join((spec.name or spec.path, shape, trials, f"seed {event.seed}", place))


def _describe_place(spec: Spec) -> str:
    agent = spec.agent
    if spec.world is not None:
        return "a fresh sandbox each"
    if agent.type == "http" and not agent.launched:
        return "running agent behind the gateway" if agent.gateway else "running agent"
    if agent.type == "http":
        return "a fresh instance each" if agent.isolation == "fresh" else "reused instances"
    return _ISOLATION[spec.agent.isolation]


class CallsSoFar(NamedTuple):
    """The calls of a running trial."""

    where: str
    made: int
    last: str


class Progress:
    """Counts events: `done` and `failed` are trials, `grid` is the matrix so far."""

    def __init__(self) -> None:
        self.total = self.done = self.taken_over = self.failed = 0
        self.header = ""
        self.workers = ""
        """The state of a cluster's workers; empty on this machine."""
        self._spending = SpendingTally()
        self._grid = Grid({}, ())
        self._fresh: list[Cell] = []
        self._drawable = False
        self._last_failed = ""
        self.under_way: dict[str, CallsSoFar] = {}
        """Trials that have made a call and have not ended, by id."""
        self._handlers: dict[type, Callable[..., None]] = {
            events.RunStarted: self._start,
            events.CallSeen: self._note_call,
            events.TrialEnded: self._end_trial,
            events.VerdictGiven: self._count_verdict,
            events.CellDecided: self._add_cell,
            events.WorkerStatus: self._note_workers,
        }

    def __call__(self, event: events.Event) -> None:
        handle = self._handlers.get(type(event))
        if handle is not None:
            handle(event)

    def _start(self, event: events.RunStarted) -> None:
        self.total, self.done, self.taken_over = event.trials, event.done, event.done
        self.header = format_header(event)
        self._drawable = len(event.spec.invariants) <= MAX_ROWS
        self._grid = Grid({r.id: r.severity for r in event.spec.invariants}, tuple(_list_heads(event.spec)))

    def _note_call(self, event: events.CallSeen) -> None:
        trial, call = event.trial, event.call
        before = self.under_way.get(trial.id)
        where = before.where if before is not None else wording.format_head(trial.scenario.name, trial.params)
        count = (before.made if before is not None else 0) + (call.phase != "declared")
        self.under_way[trial.id] = CallsSoFar(where, count, f"{call.plane} {call.tool}".strip())

    def _end_trial(self, event: events.TrialEnded) -> None:
        self.under_way.pop(event.trial.id, None)
        if event.trial.kind == "contract":
            self.done += 1
        if event.observation.trace:
            self._spending.add(event.observation.trace)

    def _count_verdict(self, event: events.VerdictGiven) -> None:
        # The verdicts of one trial arrive together, so the last id is enough to count a trial once.
        if event.verdict.outcome == "fail" and event.trial.id != self._last_failed:
            self._last_failed = event.trial.id
            self.failed += 1

    def _add_cell(self, event: events.CellDecided) -> None:
        # A matrix too tall to draw is not stored: memory stays small for any run.
        if self._drawable:
            self._fresh.append(event.cell)

    def _note_workers(self, event: events.WorkerStatus) -> None:
        lost = f", {event.lost} lost, {event.repeated} run again" if event.lost or event.repeated else ""
        self.workers = f"{wording.format_count(event.workers, 'worker')}, {event.in_flight} in flight{lost}"

    @property
    def used(self) -> str:
        """Tokens and money so far; empty if no model reported its usage."""
        return format_usage_so_far(self._spending.build_result())

    @property
    def grid(self) -> Grid:
        """The matrix so far. Faces are made when someone looks, not for each event."""
        for cell in self._fresh:
            self._grid.add(cell.invariant, wording.format_column(cell), build_face(cell))
        self._fresh.clear()
        return self._grid


def _list_heads(spec: Spec) -> list[str]:
    return [wording.format_head(scenario.name, params) for scenario in spec.scenarios for params in spec.params]
