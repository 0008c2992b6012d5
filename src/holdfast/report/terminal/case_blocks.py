"""Cases on a terminal: one line each, then why some did not pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.model.run import CaseRow, ReplicaRow, Run
from holdfast.model.score import Case
from holdfast.report import cases, mutations, wording
from holdfast.report.causes.case_causes import CaseCause, group_cases
from holdfast.report.causes.cause_words import format_faults, format_others
from holdfast.report.facts import list_case_facts
from holdfast.report.safe import count_columns, pad, shorten, to_one_line
from holdfast.report.short_names import join_names, shorten_names
from holdfast.report.terminal.failures import LABEL, SHOWN, format_facts
from holdfast.report.terminal.paint import Paint, get_painter

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
            yield from (*_format_facts(cause.first, rules, width, paint, verbose), "")
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
    yield from _format_facts(row, rules, width, paint, verbose)


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


def _format_facts(row: CaseRow, rules: cases.RuleFacts, width: int, paint: Paint, verbose: bool) -> Iterator[str]:
    for one in _select_trials(row, verbose):
        yield from format_facts(list_case_facts(row.case, one, rules, detail=verbose), width, paint, verbose)


def _select_trials(row: CaseRow, verbose: bool) -> list[ReplicaRow]:
    if verbose:
        return [row.replicas[n] for n, one in enumerate(row.case.replicas) if one.status != "pass"] or list(
            row.replicas
        )
    one = cases.find_telling(row)
    return [] if one is None else [one]
