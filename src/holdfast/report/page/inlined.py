"""The documents of a run inside `report.html`: each under its name, compressed, within limits.

The viewer requests the same documents from a server. The page derives what it can: a trial is written once and not with
each of its cells, and a cell has only what the matrix does not contain.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.model.observation import Observation, Turn
from holdfast.model.run import CaseRow, CellRow, Overall, ReplicaRow, Run, TrialRow
from holdfast.model.score import Case, Cell
from holdfast.model.spec import Part
from holdfast.report import calls, cases, wording
from holdfast.report.causes.cell_causes import Causes
from holdfast.report.page.causes import build_causes, build_failed_part
from holdfast.report.page.cells import MatrixTable, count_trials
from holdfast.report.page.run import build_overall, build_run
from holdfast.report.page.trial import Bounds, describe_exchange, describe_observation
from holdfast.report.page.values import MAX_TEXT, cut, drop_empty, encode_json, fit_value, to_utf16_span
from holdfast.report.wording import format_count

INLINED = Bounds(text=MAX_TEXT, calls=calls.SHOWN, events=200, room=100_000, sent=160, evidence=MAX_TEXT)
"""Limits for one trial. The inputs of its calls are included if a rule failed, because they may explain it."""
TEXT, HELD_TEXT = 16_000_000, 4_000_000
"""Characters of the trials of failed cells, and of passed cells: many passing cells must not crowd out a failure."""
CASES, REPLICAS = 200, 20
"""Cases whose trials are in the page, and trials per case."""
CELLS = 100_000
"""Up to this number the matrix has every cell; beyond it, only cells that did not pass."""
_LEVEL = 6
"""Compression level: 9 takes two and a half times as long for half a percent."""
_PIECE = 3 << 14
"""Bytes encoded as base64 together: a multiple of three, so only the last piece is padded."""


class DocumentPack:
    """Documents by name, one per line: JSON, gzip, base64. Equal documents give equal text."""

    def __init__(self) -> None:
        # One stream for all documents: they repeat each other's texts, which separate streams would store again and
        # again.
        self._press = zlib.compressobj(_LEVEL, wbits=31)
        self._data = bytearray()

    def add(self, name: str, document: dict[str, Any]) -> int:
        """Write a document and return its size before compression."""
        line = name.encode() + b"\t" + encode_json(document) + b"\n"
        self._data += self._press.compress(line)
        return len(line)

    def encode_pieces(self) -> Iterator[str]:
        """Yield the text; nothing can be added afterwards."""
        self._data += self._press.flush()
        for start in range(0, len(self._data), _PIECE):
            yield b64encode(self._data[start : start + _PIECE]).decode("ascii")


class InlinedRun:
    """The documents of one run, made in one walk over its cells."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._room = {True: HELD_TEXT, False: TEXT}
        self._cells = self._passed = self._shown = self._left_cells = self._left_trials = 0
        """Cells in the matrix; passed cells, and those with trials; failed cells and trials that found no room."""
        self._places = wording.Places(run)
        self._written: dict[str, str] = {}
        """The trials in the page, and the command that repeats each."""
        self.packed = DocumentPack()
        document = {"run": _build_row(run), **build_run(run)}
        grouping, matrix = Causes(run), MatrixTable(run)
        # The trials of cases come first: a cell with the same trial knows less about it.
        for case in _select_cases(run):
            for replica in case.replicas[:REPLICAS]:
                self._add_trial(replica.replica.trial, replica.replica.status == "pass", case.case, replica)
        for row in run.cells:
            grouping.add(row)
            if document["has_matrix"]:
                self._add_cell(row, matrix)
        self.packed.add("run", document)
        self.packed.add("run/causes", build_causes(run, grouping))
        if document["has_matrix"]:
            self.packed.add("run/matrix", {**matrix.build_document(), "lacks": self._describe_left_out()})

    def _add_cell(self, row: CellRow, matrix: MatrixTable) -> None:
        cell, held = row.cell, row.cell.outcome in ("pass", "n/a")
        self._passed += cell.outcome == "pass"
        if len(self._run.cells) > CELLS and (held or self._cells >= CELLS):
            self._left_cells += not held
            return
        self._cells += 1
        matrix.add(cell)
        trials = list(self._add_trials(row, held))
        left = max(0, count_trials(cell) - len(trials))
        self._shown += cell.outcome == "pass" and bool(trials)
        self._left_trials += 0 if held else left
        if held and not trials:
            return  # the matrix contains everything about it
        document = {
            "weight": cell.weight,
            "low": round(cell.rate.low, 3) if cell.rate else None,
            "high": round(cell.rate.high, 3) if cell.rate else None,
            "next": wording.format_next_step(self._run, row) if cell.outcome in ("error", "unproven") else "",
            "trials": [self._build_verdict(trial) for trial in trials],
            "left_out": left or None,
        }
        rule, column = matrix.get_indexes(cell)
        self.packed.add(f"run/cell/{rule}/{column}", drop_empty(document))

    def _add_trials(self, row: CellRow, held: bool) -> Iterator[TrialRow]:
        """Add the trials for which there is room, and yield them; without any, none is read."""
        for trial in row.trials if self._room[held] > 0 else ():
            if self._room[held] <= 0:
                return
            self._add_trial(trial.id, held, row.cell, trial)
            yield trial

    def _describe_left_out(self) -> str:
        """Describe what the page leaves out; empty if it has everything."""
        total = len(self._run.cells)
        if total <= CELLS and self._shown == self._passed and not self._left_trials:
            return ""
        text = f"{self._cells} of {format_count(total, 'cell')} are in the matrix. " if total > CELLS else ""
        left = [format_count(self._left_cells, "cell")] if self._left_cells else []
        left += [format_count(self._left_trials, "trial")] if self._left_trials else []
        lacks = f" There is no room for {' and '.join(left)} more." if left else ""
        return (
            f"{text}This page has the trials of the failed cells, and of {self._shown} of the "
            f"{format_count(self._passed, 'cell')} that passed.{lacks} For all of them, run: "
            f"holdfast report {self._run.id} -o run.json"
        )

    def _build_verdict(self, trial: TrialRow) -> dict[str, Any]:
        """Return the verdict of one rule on a trial."""
        judged = trial.turns[trial.turn].text if trial.turn < len(trial.turns) else trial.answer
        return drop_empty(
            {
                "id": trial.id,
                "outcome": trial.outcome,
                "reason": trial.reason,
                "score": trial.score,
                "turn": trial.turn or None,
                "marks": [to_utf16_span(judged or "", *span) for span in trial.marks if span[1] <= INLINED.text],
                "details": fit_value(trial.details, INLINED.evidence) if trial.details else None,
                "aside": trial.aside or None,
                "again": trial.again if trial.again != self._written[trial.id] else None,
            }
        )

    def _add_trial(self, id: str, held: bool, place: Cell | Case, row: TrialRow | ReplicaRow) -> None:
        """Write a trial once: the cells of all rules share the trials of a scenario."""
        if id in self._written:
            return
        self._written[id] = row.again
        bounds = INLINED._replace(sent=0) if held else INLINED
        if isinstance(row, TrialRow):
            # A cell stores its own verdict on the trial: the page combines those of all rules.
            document = describe_exchange(_build_observation(row), bounds)
            document |= {"ending": row.ending, "detail": cut(row.detail, bounds.text), "replica": row.replica or None}
        else:
            document = describe_observation(self._run, row.seen, row.verdicts, bounds, places=self._places)
            document["verdicts"] = [drop_empty(one) for one in document["verdicts"]]
            document["replica"] = row.replica.replica or None
        for name in ("turns", "trace", "faults"):
            document[name] = [drop_empty(one) for one in document[name]]
        document["trace_left_out"] = document["trace_left_out"] or None
        document |= {"id": id, "scenario": place.scenario, "params": wording.format_params(place.params)}
        document |= {"column": wording.format_head(place.scenario, place.params), "again": row.again}
        self._room[held] -= self.packed.add(f"run/trial/{id}", drop_empty(document))


def inline_overall(whole: Overall, runs: Mapping[Part, Run]) -> DocumentPack:
    """Return the document of a run of several parts, with the failures of each; each part has its own page."""
    failed = [build_failed_part(part, runs[part.part]) for part in whole.parts if part.exit_code and part.part in runs]
    document = {
        "run": {
            "id": whole.run,
            "part": "ci",
            "spec": whole.spec_path,
            "started": whole.started,
            "duration_s": whole.duration_s,
            "state": "ended",
            "verdict": wording.format_verdict(whole),
        },
        **build_overall(whole),
        "failed": failed,
    }
    packed = DocumentPack()
    packed.add("run", document)
    return packed


def _build_row(run: Run) -> dict[str, Any]:
    """Return the run as a row in the list of runs."""
    return {
        "id": run.id,
        "part": run.part,
        "spec": run.spec_path,
        "started": run.started,
        "duration_s": run.duration_s,
        "state": "ended" if run.complete else "interrupted",
        "verdict": wording.format_verdict(run.score),
        "trials": run.score.trials,
    }


def _select_cases(run: Run) -> Sequence[CaseRow]:
    """Return the cases to include; if there are very many, those that did not pass come first."""
    if not run.by_cases or len(run.cases) <= CASES:
        return run.cases
    return [*cases.list_troubled(run), *(row for row in run.cases if not cases.is_imperfect(row.case))][:CASES]


def _build_observation(row: TrialRow) -> Observation:
    turns = row.turns or (Turn(row.prompt, row.answer, row.latency_ms),)
    return Observation(row.id, turns, row.faults, row.output, row.notes, trace=row.trace)
