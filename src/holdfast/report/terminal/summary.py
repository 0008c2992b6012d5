"""The summary of a run for a terminal or a pipe: failures, matrix, verdict, context, notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from holdfast.model.run import CellRow, Run
from holdfast.report import calls, cases, mutations, wording
from holdfast.report.causes import cause_words
from holdfast.report.causes.cell_causes import Cause, group_cells, has_cause
from holdfast.report.facts import list_cell_facts
from holdfast.report.safe import Paint, count_columns, get_painter, to_one_line
from holdfast.report.short_names import join_names
from holdfast.report.terminal import failures
from holdfast.report.terminal.failures import LABEL, SHOWN, format_cell, format_facts, format_title, list_unexplained
from holdfast.report.terminal.matrix import build_grid, draw
from holdfast.store.run_folders import format_resume

NOTES = 3
"""Lines of notes below the verdict; `-v` shows all of them."""
_NAMED = 3
"""Scenarios that must fit into a title for any of them to be named there."""
_FAILED_NAMES = 10
"""Names of failures that a quiet summary lists."""


def format_summary(
    run: Run,
    *,
    width: int,
    color: bool,
    verbose: bool = False,
    quiet: bool = False,
    most_notes: int = NOTES,
) -> str:
    """Failures with reasons, the matrix and the verdict; `quiet` keeps only names and the verdict."""
    paint = get_painter(color)
    if quiet:
        lines = [*_list_failed_names(run, width, paint), _format_verdict(run, paint)]
    else:
        lines = format_details(run, width, paint, verbose=verbose)
        lines += [_format_verdict(run, paint), *_list_context(run), *_format_notes(run, paint, verbose, most_notes)]
    return "\n".join(lines) + "\n"


def format_details(run: Run, width: int, paint: Paint, *, verbose: bool = False) -> list[str]:
    """Return a block for each cause, then the matrix and the table of cases."""
    lines: list[str] = []
    if run.by_cases:
        lines += failures.format_blocks(run, width, paint, verbose=verbose)
    if any(list_unexplained(run)):
        lines += _format_blocks(run, width, paint, verbose)
    if wording.has_matrix(run):
        drawn = draw(build_grid(run), width, paint)
        lines += drawn if drawn and not drawn[-1] else [*drawn, ""]
    if run.by_cases and (table := failures.format_table(run, width, paint)):
        lines += [*table, ""]
    return lines


def _format_blocks(run: Run, width: int, paint: Paint, verbose: bool) -> list[str]:
    """Return a block for each cause; with `verbose` one for each cell of each cause."""
    every = (
        {(row.cell.invariant, wording.format_column(row.cell)): row for row in list_unexplained(run)} if verbose else {}
    )
    every_cause = group_cells(run, every.values() if verbose else list_unexplained(run))
    visible = every_cause if verbose else every_cause[:SHOWN]
    lines: list[str] = []
    for cause in visible:
        lines += [
            *(_format_members(run, cause, every, width, paint) if verbose else _format_block(run, cause, width, paint)),
            "",
        ]
    if len(every_cause) > len(visible):
        lines += [
            f"{cause_words.format_left_out(every_cause[len(visible) :])}, see {wording.format_report_path(run)}",
            "",
        ]
    return lines


def _format_block(run: Run, cause: Cause, width: int, paint: Paint) -> Iterator[str]:
    """Yield a cause by its first cell; a cause with a single cell is that cell."""
    if cause.cells == 1:
        yield from format_cell(run, cause.first, to_one_line(cause.place), width, paint, False)
        return
    facts = list_cell_facts(run, cause.first, wording.find_telling(cause.first))
    yield from _format_common(cause, facts, width, paint)


def _format_members(
    run: Run, cause: Cause, every: Mapping[tuple[str, str], CellRow], width: int, paint: Paint
) -> Iterator[str]:
    """Yield every cell of a cause, below what they share."""
    if cause.cells > 1:
        yield from (*_format_common(cause, (), width, paint), "")
    places = wording.Places(run)
    for n, (rule, member) in enumerate(zip(cause.member_rules, cause.members, strict=True)):
        if n:
            yield ""
        row = every[rule, member.head]
        if not cause.mixed:
            row = next(part for part in wording.split_by_cause(row) if has_cause(cause, part.cell))
        yield from format_cell(run, row, to_one_line(places.format_place(rule)), width, paint, True)


def _format_common(cause: Cause, facts: Iterable[tuple[str, str]], width: int, paint: Paint) -> Iterator[str]:
    """`✘ never-fabricate · 12 scenarios: search-down, llm-down, … and 10 more`; long names get their own lines."""
    start, marks, place = cause_words.format_start(cause), cause_words.format_marks(cause), to_one_line(cause.place)
    # The title names scenarios only if the first three of them fit: next to the place of the rule, or in the full width
    # with the place on the next line. Otherwise they get lines of their own below the title.
    total = len(cause.heads)
    heads = [to_one_line(head) for head in cause.heads[:width]]
    more = f", … and {total} more" if total > _NAMED else ""
    least = count_columns(", ".join(heads[:_NAMED]) + more)
    whole = width - count_columns(f"{start}: ") - (count_columns(marks) + 4 if marks else 0)
    before_place = whole - count_columns(place) - 2
    room = next((room for room in (before_place, whole) if least <= room), 0)
    title = f"{start}: {join_names(heads, room, total)}" if room and total > 1 else start
    yield format_title(title, marks, place, cause.outcome, width, paint)
    if not room:
        yield from format_facts([("in", join_names(heads, 2 * (width - LABEL), total))], width, paint, False)
    yield from format_facts(cause_words.list_facts(cause, facts), width, paint, False)


def _list_failed_names(run: Run, width: int, paint: Paint) -> Iterator[str]:
    """`✘ never-fabricate · search-down` for each cause."""
    names = [
        format_title(cause_words.format_start(one), "", "", one.outcome, width, paint)
        for one in group_cells(run, list_unexplained(run))
    ]
    if run.by_cases:
        names = [*failures.format_titles(run, width, paint), *names]
    yield from islice(names, _FAILED_NAMES)
    if len(names) > _FAILED_NAMES:
        yield f"and {len(names) - _FAILED_NAMES} more"


def _format_verdict(run: Run, paint: Paint) -> str:
    """`FAIL  2 critical cells failed · resilience 60.00 (calm 100.00, under chaos 45.45) · 7 of 7 cells judged`."""
    if run.running:
        return wording.format_running(paint)
    word = wording.format_verdict(run.score)
    reasons = [to_one_line(reason) for reason in run.score.reasons]
    if word == "INTERRUPTED":  # the reason for an interrupt comes first, and the verdict's word already says it
        reasons = reasons[1:]
    resume = [] if run.complete else [f"resume: {format_resume(Path(run.path), run.part)}"]
    return f"{paint(word, word)}  {' · '.join(filter(None, (', '.join(reasons), *_list_numbers(run, paint), *resume)))}"


def _list_numbers(run: Run, paint: Paint) -> Iterator[str]:
    score = run.score
    if score.mutation is not None:
        yield paint(mutations.format_headline(score), "bold")
        yield mutations.format_judged(score)
    elif run.by_cases:
        yield paint(cases.format_counts(run), "bold")
    if wording.has_matrix(run):
        sure = wording.format_interval(score.interval)
        parts = [*([sure] if sure else []), *(f"{name} {value}" for name, value in wording.list_calm_and_chaos(score))]
        yield f"resilience {paint(wording.format_number(score.value), 'bold')}" + (
            f" ({', '.join(parts)})" if parts else ""
        )
        yield wording.format_judged(score)


def _list_context(run: Run) -> Iterator[str]:
    """Yield the line below the verdict: where to find more, and how far to trust the number."""
    if run.running:
        return
    score = run.score
    ignored = sum(one.ignored for one in run.warnings)
    one_sample = score.replicas == 1 and len(run.cells) + len(run.cases) > 0
    parts = (
        wording.format_report_path(run),
        run.sandbox,
        calls.format_attack_success(score),
        "1 replica: try --replicas 5" if one_sample else "",
        calls.format_usage_so_far(score.spent),
        f"{wording.format_count(ignored, 'warning')} ignored (-v shows them)" if ignored else "",
    )
    yield "      " + " · ".join(to_one_line(part) for part in parts if part)


def _format_notes(run: Run, paint: Paint, verbose: bool, most: int) -> Iterator[str]:
    """At most so many lines, or all with `verbose`."""
    background = () if verbose else frozenset(run.background)
    tolerated = ", ".join(run.score.tolerated)
    notes = (
        [f"note: tolerated by the minimum of {run.score.min_score:g}: {to_one_line(tolerated)}"] if tolerated else []
    )
    notes += [f"note: {to_one_line(note.text)}" for note in run.notes if note not in background]
    warnings = [one for one in run.warnings if verbose or not one.ignored]
    notes += [paint(wording.format_warning(one), "warning") for one in warnings]
    notes += [f"note: {to_one_line(text)}" for text in _list_score_notes(run, verbose)]
    visible = notes if verbose or len(notes) <= most else notes[: most - 1]
    yield from visible
    if len(visible) < len(notes):
        yield f"      {wording.format_count(len(notes) - len(visible), 'more note')}: -v, or the report"


def _list_score_notes(run: Run, verbose: bool) -> Iterator[str]:
    score = run.score
    if wording.has_matrix(run) and (cost := wording.format_paired(score)):
        yield cost
    if score.flaky:
        yield f"{wording.format_count(score.flaky, 'flaky cell')}: replicas of one prompt disagree"
    if score.pass_hat:
        yield "   ".join(f"pass^{k} {value:.2f}" for k, value in wording.round_pass_hat(score).items())
    if verbose and score.attacks is not None:
        yield calls.format_attacks(score.attacks)
    if verbose and calls.format_usage(score.spent):
        yield calls.format_usage(score.spent)
