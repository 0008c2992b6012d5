"""What has happened so far in a run: counters that listeners keep, cheap enough for every event."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple, TextIO

from holdfast.model.events import (
    CallSeen,
    CellDecided,
    Event,
    RunStarted,
    TrialEnded,
    VerdictGiven,
    Warned,
    WorkersAtWork,
)
from holdfast.model.score import Cell
from holdfast.model.spec import Spec
from holdfast.report import wording
from holdfast.report.calls import so_far
from holdfast.report.matrix import MAX_ROWS, Grid, face
from holdfast.report.safe import ascii_only, one_line
from holdfast.report.wording import SIGNS, column, format_warning, marks, tally
from holdfast.score.spending import SpendingTally

_WORD = max(map(len, SIGNS))
_STARTS = {outcome: f"{sign} {outcome:<{_WORD}}  " for outcome, sign in SIGNS.items()}


class Plain:
    """Writes the header, then each cell as it is decided; warnings go to `errors`."""

    def __init__(self, stream: TextIO, *, errors: TextIO | None = None, unicode: bool = True) -> None:
        self._stream = stream
        self._errors = sys.stderr if errors is None else errors
        self._unicode = unicode
        self._sessions = False

    def __call__(self, event: Event) -> None:
        if isinstance(event, CellDecided):
            if not self._sessions:  # a session may prove nothing though each of its rules holds
                self._write(self._stream, line(event.cell))
        elif isinstance(event, RunStarted):
            self._sessions = event.spec.part == "replay"
            self._write(self._stream, one_line(header(event)))
            self._stream.flush()
        elif isinstance(event, Warned):
            self._write(self._errors, format_warning(event.warning))

    def close(self) -> None:
        """Everything written is on its way."""
        self._stream.flush()

    def _write(self, stream: TextIO, text: str) -> None:
        stream.write((text if self._unicode else ascii_only(text)) + "\n")


def line(cell: Cell) -> str:
    """`✘ fail      always-cite-source  llm-degraded  0/2, flaky  nothing matches …`."""
    start = f"{_STARTS[cell.outcome]}{one_line(cell.invariant)}  {one_line(column(cell))}"
    facts = ", ".join(filter(None, (tally(cell), *marks(cell))))
    reason = "" if cell.outcome in ("pass", "n/a") else one_line(cell.reason)
    return "  ".join(filter(None, (start, facts, reason))) if facts or reason else start


_ISOLATION = {"fresh": "fresh process each", "worker": "one worker a slot", "inline": "inline"}


def header(event: RunStarted) -> str:
    """`Finance Agent   3 rules × 3 scenarios = 9 cells, 14 trials   seed 7   fresh process each, 4 at a time`."""
    spec = event.spec
    settings = f" × {len(spec.params)} params" if len(spec.params) > 1 else ""
    shape = f"{wording.plural(event.rules, 'rule')} × {wording.plural(event.scenarios, 'scenario')}{settings}"
    size = f"{shape} = {wording.plural(event.cells, 'cell')}, {wording.plural(event.trials, 'trial')}"
    resumed = f", {event.done} taken over" if event.done else ""
    place = f"{_where(spec)}, {event.concurrency} at a time"
    return f"{spec.name or spec.path}   {size}{resumed}   seed {event.seed}   {place}"


def _where(spec: Spec) -> str:
    agent = spec.agent
    if spec.world is not None:
        return "fresh world each"
    if agent.type == "http" and not agent.launched:
        return "running agent behind the gateway" if agent.gateway else "running agent"
    if agent.type == "http":
        return "fresh instance each" if agent.isolation == "fresh" else "one instance a slot"
    return _ISOLATION[spec.agent.isolation]


class CallsSoFar(NamedTuple):
    """What is seen of a trial under way."""

    where: str
    made: int
    last: str


class Progress:
    """Counts events: `done` and `failed` are trials, `grid` is the matrix so far."""

    def __init__(self) -> None:
        self.total = self.done = self.taken_over = self.failed = 0
        self.header = ""
        self.workers = ""
        """What goes on at a cluster, in words; empty on this machine."""
        self._spending = SpendingTally()
        self._grid = Grid({}, ())
        self._fresh: list[Cell] = []
        self._drawable = False
        self._last_failed = ""
        self.under_way: dict[str, CallsSoFar] = {}
        """Trials that have made a call and have not ended, by id."""
        self._heard: dict[type, Callable[..., None]] = {
            RunStarted: self._started,
            CallSeen: self._called,
            TrialEnded: self._ended,
            VerdictGiven: self._verdict,
            CellDecided: self._decided,
            WorkersAtWork: self._at_work,
        }

    def __call__(self, event: Event) -> None:
        heard = self._heard.get(type(event))
        if heard is not None:
            heard(event)

    def _started(self, event: RunStarted) -> None:
        self.total, self.done, self.taken_over = event.trials, event.done, event.done
        self.header = header(event)
        self._drawable = len(event.spec.invariants) <= MAX_ROWS
        self._grid = Grid({r.id: r.severity for r in event.spec.invariants}, tuple(_heads(event.spec)))

    def _called(self, event: CallSeen) -> None:
        trial, call = event.trial, event.call
        before = self.under_way.get(trial.id)
        where = before.where if before is not None else wording.head(trial.scenario.name, trial.params)
        count = (before.made if before is not None else 0) + (call.phase != "declared")
        self.under_way[trial.id] = CallsSoFar(where, count, f"{call.plane} {call.tool}".strip())

    def _ended(self, event: TrialEnded) -> None:
        self.under_way.pop(event.trial.id, None)
        if event.trial.kind == "contract":
            self.done += 1
        if event.observation.trace:
            self._spending.add(event.observation.trace)

    def _verdict(self, event: VerdictGiven) -> None:
        # The verdicts of one trial come together, so the last id is enough to count a trial once.
        if event.verdict.outcome == "fail" and event.trial.id != self._last_failed:
            self._last_failed = event.trial.id
            self.failed += 1

    def _decided(self, event: CellDecided) -> None:
        # A matrix too tall to be drawn is not kept either: memory stays small whatever the run.
        if self._drawable:
            self._fresh.append(event.cell)

    def _at_work(self, event: WorkersAtWork) -> None:
        lost = f", {event.lost} lost, {event.repeated} run again" if event.lost or event.repeated else ""
        self.workers = f"{wording.plural(event.workers, 'worker')}, {event.in_flight} in flight{lost}"

    @property
    def used(self) -> str:
        """Tokens and money so far, in words; empty where no model said what it used."""
        return so_far(self._spending.result())

    @property
    def grid(self) -> Grid:
        """The matrix so far. Faces are made when somebody looks, not when events come."""
        for cell in self._fresh:
            self._grid.add(cell.invariant, wording.column(cell), face(cell))
        self._fresh.clear()
        return self._grid


def _heads(spec: Spec) -> list[str]:
    return [wording.head(scenario.name, params) for scenario in spec.scenarios for params in spec.params]
