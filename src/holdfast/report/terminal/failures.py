"""Explains failed cells and cases in a few lines: asked, answered, because, fault, reproduce."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from holdfast.model.run import CaseRow, CellRow, ReplicaRow, Run, TrialRow
from holdfast.model.score import Case
from holdfast.report import cases, mutations, wording
from holdfast.report.cases import list_explained
from holdfast.report.causes.case_causes import CaseCause, group_cases
from holdfast.report.causes.cause_words import format_faults, format_others
from holdfast.report.facts import list_case_facts, list_cell_facts
from holdfast.report.safe import Paint, count_columns, get_painter, pad, shorten, to_one_line
from holdfast.report.short_names import join_names, shorten_middle, shorten_names

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
    """Return the failed, broken and unproven cells that no case explains, in the order of the run."""
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


MAX_ROWS = 40
"""More rows do not fit a screen: fully passed cases are then only counted."""
_STATUS = 9
"""Minimum width of a status with its sign."""


def format_table(run: Run, width: int, paint: Paint) -> list[str]:
    """Return one line per case: status, composite, scenario and marks; for mutations one line per type."""
    if run.score.mutation is not None:
        return list(mutations.format_table(run.score.mutation))
    rows = list(run.cases)
    visible = rows if len(rows) <= MAX_ROWS else [row for row in rows if cases.is_imperfect(row.case)][:MAX_ROWS]
    names = shorten_names((to_one_line(cases.format_head(row.case)) for row in visible), max(20, width - 40))
    room = max([_STATUS, *(len(cases.get_outcome(row.case)) + 4 for row in visible)])
    lines = [_format_line(row, names[to_one_line(cases.format_head(row.case))], room, width, paint) for row in visible]
    if len(visible) < len(rows):
        lines.append(paint(f"  {len(rows) - len(visible)} more not shown; the report has them", "dim"))
    return (
        [f"  {pad('status', room)}{'' if run.part == 'replay' else 'composite  '}{cases.get_noun(run)}", *lines]
        if rows
        else []
    )


def _format_line(row: CaseRow, name: str, column: int, width: int, paint: Paint) -> str:
    case = row.case
    outcome = cases.get_outcome(case)
    sign = f"{wording.SIGNS[outcome]} {outcome}"
    passed = sum(one.status == "pass" for one in case.replicas)
    marks = [f"{passed}/{len(case.replicas)}"] if len(case.replicas) > 1 else []
    marks += ["flaky"] if case.flaky else []
    start = f"  {paint(sign, outcome)}" + " " * (column - count_columns(sign))
    value = "" if case.session else f"{cases.format_composite(case.composite):<11}"
    line = f"{start}{value}{name}" + (f"   {', '.join(marks)}" if marks else "")
    room = width - count_columns(line) - 11
    if not case.expected_failure or room < 10:
        return line
    return line + paint(f"   was: {shorten(to_one_line(case.expected_failure), room)}", "dim")


def format_blocks(run: Run, width: int, paint: Paint, *, verbose: bool = False) -> list[str]:
    """Return one block per cause of cases that did not fully pass; with `verbose` every case of each."""
    if not cases.list_troubled(run):
        return []
    every_cause = [*group_cases(run), *group_cases(run, passed=True)]
    visible = every_cause if verbose else every_cause[:SHOWN]
    rules = cases.RuleFacts(run)
    lines = [line for cause in visible for line in _format_cause(run, cause, rules, width, paint, verbose)]
    if len(every_cause) > len(visible):
        lines += [f"{_format_left_out(run, every_cause[len(visible) :])}, see {wording.format_report_path(run)}", ""]
    return lines


def explain_case(run: Run, row: CaseRow, width: int = 100) -> list[str]:
    """Explain one case without colour."""
    return list(_format_block(row, cases.RuleFacts(run), width, get_painter(False), False))


def _format_cause(
    run: Run, cause: CaseCause, rules: cases.RuleFacts, width: int, paint: Paint, verbose: bool
) -> Iterator[str]:
    """Describe a single case fully; several by what they share and the first one, or with `verbose` each one."""
    if len(cause.members) > 1:
        yield from _format_common(run, cause, rules, width, paint)
        if not verbose:
            yield from (*_format_case_facts(cause.first, rules, width, paint, verbose), "")
            return
        yield ""
    for row in cause.members:
        yield from (*_format_block(row, rules, width, paint, verbose), "")


def _format_left_out(run: Run, causes: Sequence[CaseCause]) -> str:
    total = sum(len(cause.members) for cause in causes)
    if total == len(causes):
        return f"and {total} more"
    return f"and {wording.format_count(len(causes), 'more cause')} ({wording.format_count(total, cases.get_noun(run))})"


def _format_common(run: Run, cause: CaseCause, rules: cases.RuleFacts, width: int, paint: Paint) -> Iterator[str]:
    """`✘ 12 mutations failed`, the list of them, and the rule's description if there is only one rule."""
    yield _format_title(run, cause, width, paint)
    heads = list(dict.fromkeys(to_one_line(cases.format_head(row.case)) for row in cause.members))
    facts = [(f"{cases.get_noun(run)}s", join_names(heads, 2 * (width - LABEL)))]
    if len(cause.rules) == 1 and (says := rules.get_description(cause.rules[0])):
        facts.append(("rule", to_one_line(says)))
    if other := format_others(cause.reasons[0], cause.reasons):
        facts.append(("also", other))
    if under := format_faults(cause):
        facts.append(("faults", under))
    yield from format_facts(facts, width, paint, False)


def _format_block(row: CaseRow, rules: cases.RuleFacts, width: int, paint: Paint, verbose: bool) -> Iterator[str]:
    yield _format_case_title(row.case, width, paint)
    yield from _format_case_facts(row, rules, width, paint, verbose)


def format_titles(run: Run, width: int, paint: Paint) -> list[str]:
    """Return the title of each cause of cases that did not pass."""
    return [_format_title(run, cause, width, paint) for cause in group_cases(run)]


def _format_title(run: Run, cause: CaseCause, width: int, paint: Paint) -> str:
    if len(cause.members) == 1:
        return _format_case_title(cause.first.case, width, paint)
    flaky = sum(row.case.flaky for row in cause.members)
    marks = f"  ({flaky} × flaky)" if flaky else ""
    trials = f" ({wording.format_count(cause.trials, 'trial')})" if cause.trials > len(cause.members) else ""
    many = wording.format_count(len(cause.members), cases.get_noun(run))
    title = f"{wording.SIGNS[cause.outcome]} {many} {_format_word(cause.first.case, many=True)}{trials}{marks}"
    return paint(shorten(title, max(20, width)), cause.outcome)


def _format_case_title(case: Case, width: int, paint: Paint) -> str:
    flaky = "  (flaky)" if case.flaky else ""
    outcome, head = cases.get_outcome(case), to_one_line(cases.format_marked_head(case))
    title = f"{wording.SIGNS[outcome]} {head} {_format_word(case)}{flaky}"
    return paint(shorten(title, max(20, width)), outcome)


def _format_word(case: Case, *, many: bool = False) -> str:
    words = {"fail": "failed", "error": "could not be judged", "pass": "passed, but not in full"}
    return ("are unproven" if many else "is unproven") if case.unproven_only else words[case.status]


def _format_case_facts(row: CaseRow, rules: cases.RuleFacts, width: int, paint: Paint, verbose: bool) -> Iterator[str]:
    for one in _select_replicas(row, verbose):
        yield from format_facts(list_case_facts(row.case, one, rules, detail=verbose), width, paint, verbose)


def _select_replicas(row: CaseRow, verbose: bool) -> list[ReplicaRow]:
    if verbose:
        return [row.replicas[n] for n, one in enumerate(row.case.replicas) if one.status != "pass"] or list(
            row.replicas
        )
    one = cases.find_telling(row)
    return [] if one is None else [one]
