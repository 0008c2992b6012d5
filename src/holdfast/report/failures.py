"""Why a cell did not hold, in a few lines: asked, answered, because, met, again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap

from holdfast.model.run import CellRow, Run, TrialRow
from holdfast.report import calls, wording
from holdfast.report.cases import explained
from holdfast.report.paint import Paint, painter
from holdfast.report.safe import columns, one_line, pad, shorten

SHOWN = 5
"""Blocks in a summary: what fits a screen."""
LABEL = 12
"""Columns of the word before each line."""


def told(run: Run, row: CellRow, width: int = 100) -> list[str]:
    """One cell, explained without colour."""
    return list(
        cell_lines(run, row, one_line(wording.Places(run).of(row.cell.invariant)), width, painter(False), False)
    )


def untold(run: Run) -> Iterator[CellRow]:
    """The troubled cells that no case explains, in the order of the run."""
    told = explained(run)
    troubled = (row for row in run.cells if row.cell.outcome in wording.TROUBLE and not wording.to_come(run, row.cell))
    return (row for row in troubled if not (told and _is_told(row, told)))


def _is_told(row: CellRow, told: frozenset[str]) -> bool:
    trial = wording.telling(row) if row.cell.outcome in ("fail", "error") else None
    return trial is not None and trial.id in told


def cell_lines(run: Run, row: CellRow, place: str, width: int, paint: Paint, verbose: bool) -> Iterator[str]:
    """A title and a block; with `verbose` every trial that came to the cell's outcome."""
    cell = row.cell
    title = f"{wording.SIGNS[cell.outcome]} {one_line(cell.invariant)} in {one_line(wording.column(cell))}"
    yield titled(title, ", ".join(wording.marks(cell)), place, cell.outcome, width, paint)
    for trial in _told(row, verbose):
        yield from fact_lines(
            (*cell_facts(run, row, trial), *_more_facts(run, row, trial, verbose)), width, paint, verbose
        )


def fact_lines(facts: Iterable[tuple[str, str]], width: int, paint: Paint, verbose: bool) -> Iterator[str]:
    """A labelled line a fact, folded to the width."""
    for label, text in facts:
        # A command must stay whole, so that it can be copied.
        lines = [text] if label == "again" else fold(text, width - LABEL, 40 if verbose else 3)
        for n, line in enumerate(lines):
            yield "  " + paint(pad(label if n == 0 else "", LABEL - 2), "dim") + line


def titled(title: str, marks: str, place: str, outcome: str, width: int, paint: Paint) -> str:
    """The title; the place behind it if there is room, else below."""
    if columns(title) > max(20, width):
        from holdfast.report.short_names import middle

        title = middle(title, max(20, width))
    title = shorten(f"{title}  ({marks})" if marks else title, max(20, width))
    gap = width - columns(title) - columns(place)
    if gap < 2:
        return f"{paint(title, outcome)}\n  {place}"
    return paint(title, outcome) + " " * min(gap, 12) + paint(place, "dim")


def _told(row: CellRow, verbose: bool) -> list[TrialRow | None]:
    every = [t for t in row.trials if verbose and t.outcome == row.cell.outcome]
    return [*sorted(every, key=lambda t: t.aside)] or [wording.telling(row)]


def cell_facts(run: Run, row: CellRow, trial: TrialRow | None) -> Iterator[tuple[str, str]]:
    """Why the cell is what it is, by one of its trials."""
    if trial is not None:
        yield from exchange(trial)
    reason = trial.reason if trial is not None and row.cell.outcome == "fail" and trial.reason else wording.why(row)
    yield "because", one_line(in_turn(trial, reason))
    if trial is not None and (met := wording.met(trial.faults)):
        yield "met", one_line("; ".join(map(wording.fault, met[:4])) + _more(len(met) - 4))
    if trial is not None and (script := calls.scripted(trial.trace)):
        yield "model", one_line(script)
    if row.cell.outcome in ("unproven", "error") and (step := wording.next_step(run, row)):
        yield "next", step
    if trial is not None and trial.again:
        yield "again", one_line(trial.again)


def _more_facts(run: Run, row: CellRow, trial: TrialRow | None, verbose: bool) -> Iterator[tuple[str, str]]:
    """What public lists call it, and one line a call."""
    if trial is None or not verbose:
        return
    from holdfast.report import standards

    met = standards.of_faults(wording.met(trial.faults))
    if known := standards.names((*standards.of_rule(run, row.cell.invariant), *met)):
        yield "known as", known
    for n, event in enumerate(trial.trace[: calls.SHOWN]):
        yield "" if n else "calls", one_line(calls.call(event))
    if calls.rest(trial):
        yield "", calls.rest(trial)


def _more(count: int) -> str:
    return f"; and {count} more" if count > 0 else ""


def exchange(trial: TrialRow, room: int = 600) -> Iterator[tuple[str, str]]:
    """How it ended, if badly; what was asked and answered, of a conversation turn by turn."""
    if ended := wording.ended(trial.ending, trial.detail, trial.calls_made):
        yield "ended", ended
    if len(trial.turns) > 1:
        from holdfast.report.cases import conversation  # few have several turns

        yield from conversation(trial.turns, decided=trial.turn, told=excerpt(trial, room))
    else:
        yield "asked", one_line(trial.prompt)
        yield "answered", excerpt(trial, room)


def in_turn(trial: TrialRow | None, reason: str) -> str:
    """The reason, with the turn that it is about where there are several."""
    about = trial is not None and len(trial.turns) > 1 and trial.outcome == "fail" and reason == trial.reason
    return f"turn {trial.turn + 1}: {reason}" if trial is not None and about else reason


def excerpt(trial: TrialRow, room: int = 600) -> str:
    """The answer on one line; a long one is cut around the words that decided."""
    text = wording.said(trial)
    if len(text) <= room:
        return one_line(text)
    start = max(0, trial.marks[0][0] - room // 3) if trial.marks else 0
    piece = one_line(text[start : start + room])
    return ("… " if start else "") + piece + (" …" if start + room < len(text) else "")


def fold(text: str, width: int, most: int) -> list[str]:
    """The text as lines of that width, cut after so many."""
    lines = wrap(text, max(20, width), break_on_hyphens=False) or ["(empty)"]
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], shorten(lines[most - 1] + " …", max(20, width))]
