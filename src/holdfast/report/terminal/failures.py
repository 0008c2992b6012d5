"""Explains a failed cell in a few lines: asked, answered, because, fault, reproduce."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap

from holdfast.model.run import CellRow, Run, TrialRow
from holdfast.report import wording
from holdfast.report.cases import list_explained
from holdfast.report.facts import list_cell_facts
from holdfast.report.safe import count_columns, pad, shorten, to_one_line
from holdfast.report.short_names import shorten_middle
from holdfast.report.terminal.paint import Paint, get_painter

SHOWN = 5
"""Blocks in a summary that fit a screen."""
LABEL = 13
"""Columns of the label before each line."""


def explain_cell(run: Run, row: CellRow, width: int = 100) -> list[str]:
    """Explain one cell without colour."""
    return list(
        format_cell(
            run,
            row,
            to_one_line(wording.Places(run).format_place(row.cell.invariant)),
            width,
            get_painter(False),
            False,
        )
    )


def list_unexplained(run: Run) -> Iterator[CellRow]:
    """Return the troubled cells that no case explains, in the order of the run."""
    counts = (run.contract or run.score).counts
    if counts and not any(counts.get(outcome) for outcome in wording.TROUBLE):
        return iter(())  # a passing run may have 100,000 cells
    trials = list_explained(run)
    troubled = (
        row for row in run.cells if row.cell.outcome in wording.TROUBLE and not wording.is_to_come(run, row.cell)
    )
    return (row for row in troubled if not (trials and _is_explained(row, trials)))


def _is_explained(row: CellRow, trials: frozenset[str]) -> bool:
    trial = wording.find_telling(row) if row.cell.outcome in ("fail", "error") else None
    return trial is not None and trial.id in trials


def format_cell(run: Run, row: CellRow, place: str, width: int, paint: Paint, verbose: bool) -> Iterator[str]:
    """Yield a title and a block; with `verbose` every trial with the cell's outcome."""
    cell = row.cell
    title = f"{wording.SIGNS[cell.outcome]} {to_one_line(cell.invariant)} · {to_one_line(wording.format_column(cell))}"
    yield format_title(title, ", ".join(wording.list_marks(cell)), place, cell.outcome, width, paint)
    for part in wording.split_by_cause(row):
        for trial in _select_trials(part, verbose):
            yield from format_facts(list_cell_facts(run, part, trial, detail=verbose), width, paint, verbose)


def format_facts(facts: Iterable[tuple[str, str]], width: int, paint: Paint, verbose: bool) -> Iterator[str]:
    """Yield a labelled line per fact, wrapped to the width."""
    for label, text in facts:
        # A command stays on one line, to be copied.
        lines = [text] if label == "reproduce" else fold(text, width - LABEL, 40 if verbose else 3)
        for n, line in enumerate(lines):
            yield "  " + paint(pad(label if n == 0 else "", LABEL - 2), "dim") + line


def format_title(title: str, marks: str, place: str, outcome: str, width: int, paint: Paint) -> str:
    """Return the title; the place is appended if there is room, otherwise below."""
    if count_columns(title) > max(20, width):
        title = shorten_middle(title, max(20, width))
    title = shorten(f"{title}  ({marks})" if marks else title, max(20, width))
    gap = width - count_columns(title) - count_columns(place)
    if not place:
        return paint(title, outcome)
    if gap < 2:
        return f"{paint(title, outcome)}\n  {place}"
    return paint(title, outcome) + " " * min(gap, 12) + paint(place, "dim")


def _select_trials(row: CellRow, verbose: bool) -> list[TrialRow | None]:
    every = wording.find_deciding(row) if verbose else []
    return [*sorted(every, key=lambda t: t.aside)] or [wording.find_telling(row)]


def fold(text: str, width: int, most: int) -> list[str]:
    """Wrap the text to the width, up to a number of lines."""
    lines = wrap(text, max(20, width), break_on_hyphens=False) or ["(empty)"]
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], shorten(lines[most - 1] + " …", max(20, width))]
