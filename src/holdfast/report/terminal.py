"""The summary of a run for a terminal or a pipe, as one string."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from holdfast.model.run import CellRow, Run
from holdfast.report import calls, cases, cause_words, wording
from holdfast.report.causes import Cause, causes
from holdfast.report.failures import LABEL, SHOWN, cell_facts, cell_lines, fact_lines, titled, untold
from holdfast.report.matrix import draw, grid
from holdfast.report.paint import Paint, painter
from holdfast.report.safe import ascii_only, columns, one_line
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


def summary(
    run: Run, *, width: int, color: bool, verbose: bool = False, quiet: bool = False, unicode: bool = True
) -> str:
    """Did it hold, where not, why, and how to see it again; `quiet` keeps the numbers and the verdict."""
    paint = painter(color)
    parts = [] if quiet else list(_parts(run, width, paint, verbose))
    text = "\n".join([*parts, *_numbers(run, paint, quiet, verbose), _verdict(run, paint)]) + "\n"
    # Colour codes are ASCII, so they survive.
    return text if unicode else ascii_only(text)


def _parts(run: Run, width: int, paint: Paint, verbose: bool) -> Iterator[str]:
    """Matrix, cases, and why each did not hold."""
    if wording.has_matrix(run):
        lines = draw(grid(run), width, paint)
        yield from lines if lines and not lines[-1] else (*lines, "")
    if run.by_cases:
        from holdfast.report import case_blocks

        yield from (*case_blocks.table(run, width, paint), "")
        yield from case_blocks.blocks(run, width, paint, verbose=verbose)
    if any(untold(run)):
        yield from blocks(run, width, paint, verbose=verbose)


def _numbers(run: Run, paint: Paint, quiet: bool, verbose: bool) -> Iterator[str]:
    if run.score.mutation is not None:
        from holdfast.report import mutations

        yield paint(mutations.headline(run.score), "bold")
        yield mutations.judged(run.score)
    elif run.by_cases:
        sample = "" if run.score.replicas > 1 or quiet or wording.has_matrix(run) else f"   {cases.ONE_SAMPLE}"
        yield f"{paint(cases.counted(run), 'bold')}{sample}"
    if wording.has_matrix(run):
        yield _score(run, paint)
        if cost := wording.paired(run.score):
            yield cost
        yield wording.judged(run.score) if quiet else _sample(run)
    if not quiet:
        yield from _about_calls(run)
        yield from _about_replicas(run)
        yield from (f"note: {one_line(note)}" for note in run.notes)
    yield from (paint(wording.format_warning(one), "warning") for one in run.warnings if verbose or not one.ignored)
    if (ignored := sum(one.ignored for one in run.warnings)) and not verbose:
        yield f"{wording.plural(ignored, 'warning')} ignored (-v shows them)"


def _score(run: Run, paint: Paint) -> str:
    score = run.score
    parts = [f"Resilience {paint(wording.number(score.value), 'bold')}"]
    if sure := wording.interval(score.interval):
        parts.append(f"({sure})")
    parts += [f"{name} {value}" for name, value in wording.calm_and_chaos(score)]
    return "   ".join(parts)


def _sample(run: Run) -> str:
    parts = [wording.judged(run.score)]
    if run.score.replicas == 1:
        parts.append(wording.ONE_SAMPLE)
    return "   ".join(parts)


def _about_calls(run: Run) -> Iterator[str]:
    if run.score.attacks is not None:
        yield calls.attacks(run.score.attacks)
    if calls.used(run.score.spent):
        yield one_line(calls.used(run.score.spent))


def _about_replicas(run: Run) -> Iterator[str]:
    if run.score.flaky:
        yield f"{wording.plural(run.score.flaky, 'flaky cell')}: replicas of one prompt disagree"
    if run.score.pass_hat:
        yield "   ".join(f"pass^{k} {value:.2f}" for k, value in wording.pass_hat(run.score).items())
    if run.score.tolerated:
        yield f"tolerated by the minimum of {run.score.min_score:g}: {one_line(', '.join(run.score.tolerated))}"


def _verdict(run: Run, paint: Paint) -> str:
    if run.running:
        return wording.running(paint)
    word = wording.verdict(run.score)
    reasons = [one_line(reason) for reason in run.score.reasons]
    if not run.complete:
        # The reason for an interrupt comes first, and the word INTERRUPTED has said it.
        reasons = [*(reasons[1:] if word == "INTERRUPTED" else reasons), f"go on: {wording.resume(run)}"]
    said = f"{paint(word, word)}   {', '.join(reasons)}".rstrip()
    return f"{said}   ·   {one_line(wording.report_path(run))}"
