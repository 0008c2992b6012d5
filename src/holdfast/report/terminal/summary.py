"""The summary of a run for a terminal or a pipe: failures, matrix, verdict, context, notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from holdfast.model.run import CellRow, Run
from holdfast.report import calls, cases, mutations, wording
from holdfast.report.causes import cause_words
from holdfast.report.causes.cell_causes import Cause, causes, is_of
from holdfast.report.facts import cell_facts
from holdfast.report.safe import ascii_only, columns, one_line
from holdfast.report.short_names import listed
from holdfast.report.terminal.failures import LABEL, SHOWN, cell_lines, fact_lines, titled, unexplained
from holdfast.report.terminal.matrix import draw, grid
from holdfast.report.terminal.paint import Paint, painter

NOTES = 3
"""Lines of notes below the verdict; `-v` shows all of them."""
_NAMED = 3
"""Scenarios that must fit into a title for any of them to be named there."""
_FAILED_NAMES = 10
"""Names of failures that a quiet summary lists."""


def summary(
    run: Run,
    *,
    width: int,
    color: bool,
    verbose: bool = False,
    quiet: bool = False,
    unicode: bool = True,
    most_notes: int = NOTES,
) -> str:
    """Failures with reasons, the matrix and the verdict; `quiet` keeps only names and the verdict."""
    paint = painter(color)
    if quiet:
        lines = [*_failed_names(run, width, paint), _verdict(run, paint)]
    else:
        lines = failures_and_matrix(run, width, paint, verbose=verbose)
        lines += [_verdict(run, paint), *_context(run), *_notes(run, paint, verbose, most_notes)]
    text = "\n".join(lines) + "\n"
    # Colour codes are ASCII, so they survive.
    return text if unicode else ascii_only(text)


def failures_and_matrix(run: Run, width: int, paint: Paint, *, verbose: bool = False) -> list[str]:
    """A block for each cause, then the matrix and the table of cases."""
    lines: list[str] = []
    if run.by_cases:
        from holdfast.report.terminal import case_blocks

        lines += case_blocks.blocks(run, width, paint, verbose=verbose)
    if any(unexplained(run)):
        lines += _blocks(run, width, paint, verbose)
    if wording.has_matrix(run):
        drawn = draw(grid(run), width, paint)
        lines += drawn if drawn and not drawn[-1] else [*drawn, ""]
    if run.by_cases and (table := case_blocks.table(run, width, paint)):
        lines += [*table, ""]
    return lines


def _blocks(run: Run, width: int, paint: Paint, verbose: bool) -> list[str]:
    """A block for each cause; with `verbose` one for each cell of each cause."""
    every = {(row.cell.invariant, wording.column(row.cell)): row for row in unexplained(run)} if verbose else {}
    every_cause = causes(run, every.values() if verbose else unexplained(run))
    visible = every_cause if verbose else every_cause[:SHOWN]
    lines: list[str] = []
    for cause in visible:
        lines += [*(_members(run, cause, every, width, paint) if verbose else _block(run, cause, width, paint)), ""]
    if len(every_cause) > len(visible):
        lines += [f"{cause_words.left_out(every_cause[len(visible) :])}, see {wording.report_path(run)}", ""]
    return lines


def _block(run: Run, cause: Cause, width: int, paint: Paint) -> Iterator[str]:
    """A cause by its first cell; a cause with a single cell is that cell."""
    if cause.cells == 1:
        yield from cell_lines(run, cause.first, one_line(cause.place), width, paint, False)
        return
    facts = cell_facts(run, cause.first, wording.telling(cause.first))
    yield from _common(cause, facts, width, paint)


def _members(
    run: Run, cause: Cause, every: Mapping[tuple[str, str], CellRow], width: int, paint: Paint
) -> Iterator[str]:
    """Every cell of a cause, below what they share."""
    if cause.cells > 1:
        yield from (*_common(cause, (), width, paint), "")
    places = wording.Places(run)
    for n, (rule, member) in enumerate(zip(cause.member_rules, cause.members, strict=True)):
        if n:
            yield ""
        row = every[rule, member.head]
        if not cause.mixed:
            row = next(part for part in wording.split_by_cause(row) if is_of(cause, part.cell))
        yield from cell_lines(run, row, one_line(places.of(rule)), width, paint, True)


def _common(cause: Cause, facts: Iterable[tuple[str, str]], width: int, paint: Paint) -> Iterator[str]:
    """`✘ never-fabricate · 12 scenarios: search-down, llm-down, … and 10 more`; long names get their own lines."""
    start, marks, place = cause_words.start(cause), cause_words.marks(cause), one_line(cause.place)
    total = len(cause.heads)
    heads = [one_line(head) for head in cause.heads[:width]]
    more = f", … and {total} more" if total > _NAMED else ""
    least = columns(", ".join(heads[:_NAMED]) + more)
    whole = width - columns(f"{start}: ") - (columns(marks) + 4 if marks else 0)
    before_place = whole - columns(place) - 2
    room = next((room for room in (before_place, whole) if least <= room), 0)
    title = f"{start}: {listed(heads, room, total)}" if room and total > 1 else start
    yield titled(title, marks, place, cause.outcome, width, paint)
    if not room:
        yield from fact_lines([("in", listed(heads, 2 * (width - LABEL), total))], width, paint, False)
    yield from fact_lines(cause_words.facts(cause, facts), width, paint, False)


def _failed_names(run: Run, width: int, paint: Paint) -> Iterator[str]:
    """`✘ never-fabricate · search-down` for each cause."""
    names = [titled(cause_words.start(one), "", "", one.outcome, width, paint) for one in causes(run, unexplained(run))]
    if run.by_cases:
        from holdfast.report.terminal import case_blocks

        names = [*case_blocks.titles(run, width, paint), *names]
    yield from islice(names, _FAILED_NAMES)
    if len(names) > _FAILED_NAMES:
        yield f"and {len(names) - _FAILED_NAMES} more"


def _verdict(run: Run, paint: Paint) -> str:
    """`FAIL  2 critical cells failed · resilience 60.00 (calm 100.00, under chaos 45.45) · 7 of 7 cells judged`."""
    if run.running:
        return wording.running(paint)
    word = wording.verdict(run.score)
    reasons = [one_line(reason) for reason in run.score.reasons]
    if word == "INTERRUPTED":  # the reason for an interrupt comes first, and the verdict's word already says it
        reasons = reasons[1:]
    resume = [] if run.complete else [f"resume: {wording.resume(run)}"]
    return f"{paint(word, word)}  {' · '.join(filter(None, (', '.join(reasons), *_numbers(run, paint), *resume)))}"


def _numbers(run: Run, paint: Paint) -> Iterator[str]:
    score = run.score
    if score.mutation is not None:
        yield paint(mutations.headline(score), "bold")
        yield mutations.judged(score)
    elif run.by_cases:
        yield paint(cases.counted(run), "bold")
    if wording.has_matrix(run):
        sure = wording.interval(score.interval)
        parts = [*([sure] if sure else []), *(f"{name} {value}" for name, value in wording.calm_and_chaos(score))]
        yield f"resilience {paint(wording.number(score.value), 'bold')}" + (f" ({', '.join(parts)})" if parts else "")
        yield wording.judged(score)


def _context(run: Run) -> Iterator[str]:
    """The line below the verdict: where to find more, and how far to trust the number."""
    if run.running:
        return
    score = run.score
    ignored = sum(one.ignored for one in run.warnings)
    one_sample = score.replicas == 1 and len(run.cells) + len(run.cases) > 0
    parts = (
        wording.report_path(run),
        run.sandbox,
        calls.attack_success(score),
        "1 replica: try --replicas 5" if one_sample else "",
        calls.so_far(score.spent),
        f"{wording.plural(ignored, 'warning')} ignored (-v shows them)" if ignored else "",
    )
    yield "      " + " · ".join(one_line(part) for part in parts if part)


def _notes(run: Run, paint: Paint, verbose: bool, most: int) -> Iterator[str]:
    """At most so many lines, or all with `verbose`."""
    background = () if verbose else frozenset(run.background)
    tolerated = ", ".join(run.score.tolerated)
    notes = [f"note: tolerated by the minimum of {run.score.min_score:g}: {one_line(tolerated)}"] if tolerated else []
    notes += [f"note: {one_line(note.text)}" for note in run.notes if note not in background]
    warnings = [one for one in run.warnings if verbose or not one.ignored]
    notes += [paint(wording.format_warning(one), "warning") for one in warnings]
    notes += [f"note: {one_line(text)}" for text in _about_score(run, verbose)]
    visible = notes if verbose or len(notes) <= most else notes[: most - 1]
    yield from visible
    if len(visible) < len(notes):
        yield f"      {wording.plural(len(notes) - len(visible), 'more note')}: -v, or the report"


def _about_score(run: Run, verbose: bool) -> Iterator[str]:
    score = run.score
    if wording.has_matrix(run) and (cost := wording.paired(score)):
        yield cost
    if score.flaky:
        yield f"{wording.plural(score.flaky, 'flaky cell')}: replicas of one prompt disagree"
    if score.pass_hat:
        yield "   ".join(f"pass^{k} {value:.2f}" for k, value in wording.pass_hat(score).items())
    if verbose and score.attacks is not None:
        yield calls.attacks(score.attacks)
    if verbose and calls.used(score.spent):
        yield calls.used(score.spent)
