"""Causes on a terminal: a block each, the worst first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from holdfast.model.run import CellRow, Run
from holdfast.report import cause_words, wording
from holdfast.report.causes import Cause, causes
from holdfast.report.failures import LABEL, SHOWN, cell_facts, cell_lines, fact_lines, titled, untold
from holdfast.report.paint import Paint
from holdfast.report.safe import columns, one_line
from holdfast.report.short_names import listed

_NAMED = 3
"""Scenarios that must find room in a title for any of them to stand there."""


def blocks(run: Run, width: int, paint: Paint, *, verbose: bool = False) -> list[str]:
    """A block a cause, and every cell of each with `verbose`. What a case explains is not told again."""
    every = {(row.cell.invariant, wording.column(row.cell)): row for row in untold(run)} if verbose else {}
    found = causes(run, every.values() if verbose else untold(run))
    shown = found if verbose else found[:SHOWN]
    lines: list[str] = []
    for cause in shown:
        lines += [*(_members(run, cause, every, width, paint) if verbose else _block(run, cause, width, paint)), ""]
    if len(found) > len(shown):
        lines += [f"{cause_words.left_out(found[len(shown) :])}, see {wording.report_path(run)}", ""]
    return lines


def _block(run: Run, cause: Cause, width: int, paint: Paint) -> Iterator[str]:
    """A cause by its first cell; one of a single cell is that cell."""
    if cause.cells == 1:
        yield from cell_lines(run, cause.first, one_line(cause.place), width, paint, False)
        return
    facts = cell_facts(run, cause.first, wording.telling(cause.first))
    yield from _told(cause, facts, width, paint)


def _members(
    run: Run, cause: Cause, every: Mapping[tuple[str, str], CellRow], width: int, paint: Paint
) -> Iterator[str]:
    """Every cell of a cause, below what they have in common."""
    if cause.cells > 1:
        yield from (*_told(cause, (), width, paint), "")
    places = wording.Places(run)
    for n, (rule, member) in enumerate(zip(cause.member_rules, cause.members, strict=True)):
        if n:
            yield ""
        yield from cell_lines(run, every[rule, member.head], one_line(places.of(rule)), width, paint, True)


def _told(cause: Cause, facts: Iterable[tuple[str, str]], width: int, paint: Paint) -> Iterator[str]:
    """`✘ never-fabricate in 12 scenarios: search-down, llm-down, … and 10 more`; long names get lines of their own."""
    start, marks, place = cause_words.start(cause), cause_words.marks(cause), one_line(cause.place)
    total = len(cause.heads)
    heads = [one_line(head) for head in cause.heads[:width]]
    more = f", … and {total} more" if total > _NAMED else ""
    needed = columns(", ".join(heads[:_NAMED]) + more)
    whole = width - columns(f"{start}: ") - (columns(marks) + 4 if marks else 0)
    beside = whole - columns(place) - 2
    room = next((room for room in (beside, whole) if needed <= room), 0)
    title = f"{start}: {listed(heads, room, total)}" if room and total > 1 else start
    yield titled(title, marks, place, cause.outcome, width, paint)
    if not room:
        yield from fact_lines([("in", listed(heads, 2 * (width - LABEL), total))], width, paint, False)
    yield from fact_lines(cause_words.facts(cause, facts), width, paint, False)
