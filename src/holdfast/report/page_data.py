"""A run as the page wants it: columns of numbers over one table of strings, small once packed."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from typing import Any

import msgspec

from holdfast.model.codec import encode
from holdfast.model.observation import FaultMet, Turn
from holdfast.model.run import CellRow, Run, TrialRow
from holdfast.model.score import Cell
from holdfast.model.spec import Invariant
from holdfast.model.trace import TraceEvent
from holdfast.model.verdict import OUTCOMES
from holdfast.report import calls, wording
from holdfast.report.safe import encodable

MAX_TEXT = 20_000
"""Characters of one answer or output in the page; the run directory has the rest, and the page says so."""
SENT = 160
"""Characters of what a call sent that the page shows."""
_CODE = {outcome: n for n, outcome in enumerate(OUTCOMES)}


def packed(run: Run) -> str:
    """The page's data: JSON, gzip, base64. Equal runs give equal text."""
    return b64encode(gzip.compress(encode(tables(run)), 9, mtime=0)).decode("ascii")


def tables(run: Run) -> dict[str, Any]:
    """Rules, columns, cells and trials, before packing."""
    strings = Interned()
    strings.of("")
    shown = [row.cell for row in run.cells]  # each walk through the rows makes them anew
    rules = list(dict.fromkeys(cell.invariant for cell in shown))
    heads = {wording.column(cell): cell for cell in shown}
    cells = _Cells(strings, {r: n for n, r in enumerate(rules)}, {h: n for n, h in enumerate(heads)})
    trials = _Trials(strings)
    for row in run.cells:
        cells.add(run, row, len(trials))
        for trial in row.trials:
            trials.add(trial)
    return {
        "rules": _rules(run, rules),
        "columns": [_column(run, cell) for cell in heads.values()],
        "cells": cells.columns,
        "trials": trials.columns,
        "more": trials.more,
        "faults": trials.faults.values,
        "calls": trials.calls.values,
        "strings": strings.values,
    }


class Interned:
    """A table in which equal entries are kept once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._index: dict[Any, int] = {}

    def of(self, value: str | tuple[Any, ...]) -> int:
        """Where the value stands in the table."""
        found = self._index.get(value)
        if found is None:
            found = self._index[value] = len(self.values)
            self.values.append(encodable(value) if isinstance(value, str) else value)
        return found


class _Cells:
    def __init__(self, strings: Interned, rules: dict[str, int], heads: dict[str, int]) -> None:
        self._strings, self._rules, self._heads = strings, rules, heads
        names = ("rule", "column", "outcome", "reason", "next", "flags", "weight", "tally", "low", "high", "first")
        self.columns: dict[str, list[Any]] = {name: [] for name in names}

    def add(self, run: Run, row: CellRow, first: int) -> None:
        cell = row.cell
        troubled = cell.outcome in ("error", "unproven")
        values = (
            self._rules[cell.invariant],
            self._heads[wording.column(cell)],
            _CODE[cell.outcome],
            self._strings.of(cell.reason),
            self._strings.of(wording.next_step(run, row) if troubled else ""),
            self._strings.of(", ".join(wording.marks(cell))),
            cell.weight,
            self._strings.of(wording.tally(cell)),
            round(cell.rate.low, 3) if cell.rate else -1,
            round(cell.rate.high, 3) if cell.rate else -1,
            first,
        )
        for kept, value in zip(self.columns.values(), values, strict=True):
            kept.append(value)


class _Trials:
    def __init__(self, strings: Interned) -> None:
        self._strings = strings
        self.faults = Interned()
        self.calls = Interned()
        """What many calls have in common; when they were made is written by the trial."""
        names = ("id", "prompt", "answer", "ending", "latency", "outcome", "reason", "replica", "again", "faults")
        self.columns: dict[str, list[Any]] = {name: [] for name in names}
        self.more: dict[int, dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self.columns["id"])

    def add(self, trial: TrialRow) -> None:
        text = self._strings.of
        more = self._rare(trial)
        if more:
            self.more[len(self)] = more
        values = (
            trial.id,
            text(trial.prompt),
            -1 if trial.answer is None else text(cut(trial.answer)),
            text(trial.ending + (f": {trial.detail}" if trial.detail else "")),
            round(trial.latency_ms, 1),
            _CODE[trial.outcome],
            text(trial.reason),
            trial.replica,
            # The id would make each command unlike all others, and the page larger.
            text(trial.again.replace(trial.id, "\0") if trial.id else trial.again),
            [self.faults.of(_fault(met, text)) for met in trial.faults],
        )
        for kept, value in zip(self.columns.values(), values, strict=True):
            kept.append(value)

    def _rare(self, trial: TrialRow) -> dict[str, Any]:
        judged = _judged(trial)
        rare = {
            "marks": [_utf16(judged, *span) for span in trial.marks if span[1] <= MAX_TEXT],
            "turn": trial.turn,
            "turns": [_turn(t, self._strings) for t in trial.turns] if len(trial.turns) > 1 else [],
            "details": _plain(trial.details),
            "output": self._strings.of(cut(trial.output)) if trial.output else 0,
            "notes": [self._strings.of(note) for note in trial.notes],
            "calls": [part for e in trial.trace[: calls.SHOWN] for part in self._call(e, trial.outcome != "pass")],
            "rest": self._strings.of(calls.rest(trial)),
        }
        return {name: value for name, value in rare.items() if value}

    def _call(self, event: TraceEvent, troubled: bool) -> tuple[int, float, float]:
        """Which kind of call it is, when it began and how long it took; what was sent, where that may explain."""
        text = self._strings.of
        sent = event.input[:SENT] if troubled else ""
        words = (event.plane, event.tool, calls.ending(event), event.fault, sent)
        kind = (event.retry, calls.tokens(event), int(event.failed), *map(text, words))
        return self.calls.of(kind), round(event.ts * 1000, 1), round(event.duration_ms, 1)


def _judged(trial: TrialRow) -> str:
    """The text that the marks count in."""
    if len(trial.turns) > 1 and trial.turn < len(trial.turns):
        return trial.turns[trial.turn].text or ""
    return trial.answer or ""


def _utf16(text: str, start: int, end: int) -> tuple[int, int]:
    """A span in the units a browser counts in."""
    if text.isascii():
        return start, end
    return _units(text[:start]), _units(text[:end])


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _turn(turn: Turn, strings: Interned) -> list[Any]:
    ending = turn.ending + (f": {turn.detail}" if turn.detail else "")
    said = -1 if turn.text is None else strings.of(cut(turn.text))
    return [strings.of(turn.asked), said, strings.of(ending), round(turn.latency_ms, 1)]


def _fault(met: FaultMet, text: Any) -> tuple[Any, ...]:
    words = (met.plane, met.target, met.mode, met.would, met.got, met.note)
    return (met.call, int(met.effect == "met"), *map(text, words))


def _rules(run: Run, ids: list[str]) -> list[list[str]]:
    known, places = {rule.id: rule for rule in run.invariants}, wording.Places(run)
    return [[encodable(value) for value in (id, *_about(known.get(id)), places.of(id))] for id in ids]


def _about(rule: Invariant | None) -> tuple[str, str, str]:
    if rule is None:
        return "", "", ""
    return "critical" if rule.gate else rule.severity, rule.check, rule.description


def _column(run: Run, cell: Cell) -> list[Any]:
    scenario = next((s for s in run.scenarios if s.name == cell.scenario), None)
    faults = [f"{i.mode} on {i.plane} {i.target}".rstrip(" *") for i in scenario.injections] if scenario else []
    values = (cell.scenario, wording.params(cell.params), ", ".join(faults))
    return [encodable(value) for value in values]


def _plain(details: dict[str, Any]) -> dict[str, Any]:
    """Evidence as the page shows it: text by name."""
    shown = {}
    for name, value in details.items():
        text = value if isinstance(value, str) else encode_text(value)
        shown[encodable(str(name))] = encodable(cut(text))
    return shown


def encode_text(value: Any) -> str:
    """A value of any kind as JSON text."""
    try:
        return msgspec.json.encode(value, enc_hook=str).decode()
    except UnicodeEncodeError:  # half a character, as some programs print it
        return json.dumps(msgspec.to_builtins(value, enc_hook=str))


def cut(text: str) -> str:
    """A long text without its end, and where that is."""
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}\n[cut here: {len(text) - MAX_TEXT} more characters are in the run directory]"
