"""Stored runs as a table for a terminal or a pipe."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from holdfast.report.safe import count_columns, pad, shorten, to_one_line
from holdfast.report.terminal.paint import Paint
from holdfast.report.wording import VERDICTS, format_number
from holdfast.store.past_run import SHARD, UNENDED, PastRun

HEADS = ("run", "started (UTC)", "part", "spec", "score", "verdict", "trials", "commit")
_SPEC = 3
_LEAST = 12
"""Minimum width of a spec's path, however narrow the screen is."""


def format_table(runs: Sequence[PastRun], width: int, paint: Paint) -> Iterator[str]:
    """Yield one line per run, in the given order; below a run that cannot be shown, the reason."""
    rows = [build_cells(run) for run in runs]
    wide = [max(count_columns(row[at]) for row in (HEADS, *rows)) for at in range(len(HEADS))]
    wide[_SPEC] = max(_LEAST, min(wide[_SPEC], width - sum(wide) + wide[_SPEC] - 2 * (len(HEADS) - 1)))
    yield paint(_format_line(HEADS, wide), "dim")
    for run, row in zip(runs, rows, strict=True):
        yield _paint_line(row, wide, paint)
        if note := run.note or UNENDED.get(run.state):
            yield paint(f"  {to_one_line(note)}", "dim")


def build_cells(run: PastRun) -> tuple[str, ...]:
    """Return the table's cells for a run."""
    plain = run.score is not None or not run.cases or SHARD in run.part
    score = format_number(run.score) if plain else f"{run.cases_passed}/{run.cases} cases"
    spec = to_one_line(shorten_path(run.spec)) if run.spec else "–"
    trials = str(run.trials) if run.ended else "–"
    part = run.part if run.whole or not run.part else f"{run.part}, partial"
    return (run.id, format_time(run), part or "–", spec, score, format_verdict(run), trials, format_commit(run))


def format_time(run: PastRun) -> str:
    """Return the start time, to the minute."""
    return run.started[:16].replace("T", " ") or "–"


def format_commit(run: PastRun) -> str:
    """Return the commit, with a + if files had uncommitted changes."""
    return run.short_commit or "–"


def format_verdict(run: PastRun) -> str:
    """Return one word, as at the end of the run's summary."""
    if run.exit_code is None:
        return run.state or ("unfinished" if run.part else "unreadable")
    if SHARD in run.part and not run.exit_code:
        return "SHARD"
    return VERDICTS.get(run.exit_code, "ERROR")


def shorten_path(path: str) -> str:
    """Return the path relative to the current folder, if that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(path) else path


def _format_line(row: Sequence[str], wide: Sequence[int]) -> str:
    return "  ".join(pad(shorten(cell, room), room) for cell, room in zip(row, wide, strict=True)).rstrip()


def _paint_line(row: Sequence[str], wide: Sequence[int], paint: Paint) -> str:
    word = row[5]
    line = _format_line(row, wide)
    at = line.rfind(word)
    return line if at < 0 else line[:at] + paint(word, word) + line[at + len(word) :]
