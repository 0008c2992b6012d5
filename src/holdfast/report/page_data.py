"""Cells and trials as the page wants them: columns of numbers over one table of strings, small once packed."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.model.observation import FaultMet, Turn
from holdfast.model.run import CellRow, Run, TrialRow
from holdfast.model.score import Cell
from holdfast.model.trace import TraceEvent
from holdfast.model.verdict import OUTCOMES
from holdfast.report import calls, wording
from holdfast.report.page.values import MAX_TEXT, Interned, cut, utf16_span
from holdfast.report.safe import encodable

TEXT, HELD_TEXT, SHORT = 16_000_000, 4_000_000, 200
"""Characters of all trials of cells that did not hold, and of cells that did; of one text when those are used up."""
SENT = 160
"""Characters of what a call sent that the page shows."""
_CODE = {outcome: n for n, outcome in enumerate(OUTCOMES)}


class CellTable:
    def __init__(self, strings: Interned) -> None:
        self._text = strings.of
        self.rules: dict[str, int] = {}
        self.heads: dict[str, Cell] = {}
        self._columns: dict[str, int] = {}
        self._same: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._places: list[tuple[int, int, int]] = []
        self._alike: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self._places)

    def add(self, run: Run, row: CellRow, first: int, next_: str) -> None:
        cell = row.cell
        if cell.outcome in ("error", "unproven"):
            next_ = wording.next_step(run, row)
        rule = self.rules.setdefault(cell.invariant, len(self.rules))
        self._places.append((rule, self._column(cell), first))
        self._alike.append(self._facts(cell, next_))

    @property
    def columns(self) -> dict[str, list[Any]]:
        rule, column, first = ([place[n] for place in self._places] for n in range(3))
        names = ("outcome", "reason", "next", "flags", "weight", "tally", "low", "high")
        alike = {name: [facts[n] for facts in self._alike] for n, name in enumerate(names)}
        return {"rule": rule, "column": column, **alike, "first": first}

    def _column(self, cell: Cell) -> int:
        head = wording.column(cell)
        found = self._columns.get(head)
        if found is None:
            found = self._columns[head] = len(self.heads)
            self.heads[head] = cell
        return found

    def _facts(self, cell: Cell, next_: str) -> tuple[Any, ...]:
        """Most cells of a large matrix held, and are alike in all but their place."""
        if cell.outcome != "pass":
            return self._all(cell, next_)
        rate = (cell.rate.low, cell.rate.high) if cell.rate else None
        marks = (cell.flaky, cell.fails_in_calm, cell.simulated, cell.concurrent)
        key = (cell.reason, next_, marks, cell.weight, cell.passes, cell.fails, rate)
        found = self._same.get(key)
        if found is None:
            found = self._same[key] = self._all(cell, next_)
        return found

    def _all(self, cell: Cell, next_: str) -> tuple[Any, ...]:
        return (
            _CODE[cell.outcome],
            self._text(cell.reason),
            self._text(next_),
            self._text(", ".join(wording.marks(cell))),
            cell.weight,
            self._text(wording.tally(cell)),
            round(cell.rate.low, 3) if cell.rate else -1,
            round(cell.rate.high, 3) if cell.rate else -1,
        )


class TrialTable:
    def __init__(self, strings: Interned) -> None:
        self._strings = strings
        self._room = {True: HELD_TEXT, False: TEXT}
        self.faults = Interned()
        self.calls = Interned()
        """What many calls have in common; when they were made is written by the trial."""
        self._rows: list[tuple[Any, ...]] = []
        self.more: dict[int, dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def columns(self) -> dict[str, list[Any]]:
        names = ("id", "prompt", "answer", "ending", "latency", "outcome", "reason", "replica", "again", "faults")
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(names)
        return {name: list(column) for name, column in zip(names, columns, strict=True)}

    def add(self, trial: TrialRow, held: bool) -> None:
        text = self._strings.of
        before = self._strings.size
        most = MAX_TEXT if self._room[held] > 0 else SHORT
        more = self._rare(trial, most)
        if more:
            self.more[len(self)] = more
        row = (
            trial.id,
            text(trial.prompt),
            -1 if trial.answer is None else text(cut(trial.answer, most)),
            text(trial.ending + (f": {trial.detail}" if trial.detail else "")),
            round(trial.latency_ms, 1),
            _CODE[trial.outcome],
            text(trial.reason),
            trial.replica,
            # The id would make each command unlike all others, and the page larger.
            text(trial.again.replace(trial.id, "\0") if trial.id else trial.again),
            [self.faults.of(_fault(met, text)) for met in trial.faults],
        )
        self._rows.append(row)
        self._room[held] -= self._strings.size - before

    def _rare(self, trial: TrialRow, most: int) -> dict[str, Any]:
        """What most trials have nothing of, by its name."""
        rare: dict[str, Any] = {}
        if trial.marks and (marks := _marks(trial, most)):
            rare["marks"] = marks
        if trial.turn:
            rare["turn"] = trial.turn
        if trial.aside:
            rare["aside"] = trial.aside
        if len(trial.turns) > 1:
            rare["turns"] = [_turn(t, self._strings, most) for t in trial.turns]
        if trial.details:
            rare["details"] = _plain(trial.details, most)
        if trial.output:
            rare["output"] = self._strings.of(cut(trial.output, most))
        if trial.notes:
            rare["notes"] = [self._strings.of(note) for note in trial.notes]
        if trial.trace:
            shown = trial.trace[: calls.SHOWN]
            rare["calls"] = [part for event in shown for part in self._call(event, trial.outcome != "pass")]
            if rest := calls.rest(trial):
                rare["rest"] = self._strings.of(rest)
        return rare

    def _call(self, event: TraceEvent, troubled: bool) -> tuple[int, float, float]:
        """Which kind of call it is, when it began and how long it took; what was sent, where that may explain."""
        text = self._strings.of
        sent = event.input[:SENT] if troubled else ""
        words = (event.plane, event.tool, calls.ending(event), event.fault, sent, event.script)
        kind = (event.retry, event.tokens, int(event.failed), *map(text, words))
        return self.calls.of(kind), round(event.ts * 1000, 1), round(event.duration_ms, 1)


def _marks(trial: TrialRow, most: int) -> list[tuple[int, int]]:
    judged = _judged(trial)
    return [utf16_span(judged, *span) for span in trial.marks if span[1] <= most]


def _judged(trial: TrialRow) -> str:
    """The text that the marks count in."""
    if len(trial.turns) > 1 and trial.turn < len(trial.turns):
        return trial.turns[trial.turn].text or ""
    return trial.answer or ""


def _turn(turn: Turn, strings: Interned, most: int) -> list[Any]:
    ending = turn.ending + (f": {turn.detail}" if turn.detail else "")
    said = -1 if turn.text is None else strings.of(cut(turn.text, most))
    return [strings.of(turn.asked), said, strings.of(ending), round(turn.latency_ms, 1)]


def _fault(met: FaultMet, text: Any) -> tuple[Any, ...]:
    words = (met.plane, met.target, met.mode, met.would, met.got, met.note)
    return (met.call, int(met.effect == "met"), *map(text, words))


def column_row(run: Run, cell: Cell) -> list[Any]:
    scenario = next((s for s in run.scenarios if s.name == cell.scenario), None)
    faults = [f"{i.mode} on {i.plane} {i.target}".rstrip(" *") for i in scenario.injections] if scenario else []
    values = (cell.scenario, wording.params(cell.params), ", ".join(faults))
    return [encodable(value) for value in values]


def _plain(details: dict[str, Any], most: int) -> dict[str, Any]:
    """Evidence as the page shows it: text by name."""
    shown = {}
    for name, value in details.items():
        text = value if isinstance(value, str) else encode_text(value)
        shown[encodable(str(name))] = encodable(cut(text, most))
    return shown


def encode_text(value: Any) -> str:
    """A value of any kind as JSON text."""
    try:
        return msgspec.json.encode(value, enc_hook=str).decode()
    except UnicodeEncodeError:  # half a character, as some programs print it
        import json

        return json.dumps(msgspec.to_builtins(value, enc_hook=str))
