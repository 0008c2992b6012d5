"""Cases on a terminal: a line each, then why those that did not pass did not."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.model.run import CaseRow, ReplicaRow, Run
from holdfast.model.score import Case
from holdfast.report import calls, cases, mutations, wording
from holdfast.report.failures import LABEL, SHOWN, fold
from holdfast.report.paint import Paint, painter
from holdfast.report.safe import columns, one_line, pad, shorten

MAX_ROWS = 40
"""More than this is more than a screen: then those that passed in full are only counted."""
_STATUS = 5


def table(run: Run, width: int, paint: Paint) -> list[str]:
    """A line a case: status, composite, scenario, and its marks; of mutations a line a type."""
    if run.score.mutation is not None:
        return list(mutations.lines(run.score.mutation))
    rows = list(run.cases)
    shown = rows if len(rows) <= MAX_ROWS else [row for row in rows if cases.short(row.case)][:MAX_ROWS]
    lines = [_line(row, width, paint) for row in shown]
    if len(shown) < len(rows):
        lines.append(paint(f"  {len(rows) - len(shown)} more not shown; the report has them", "dim"))
    return (
        [f"  {pad('status', _STATUS + 4)}{'' if run.part == 'replay' else 'composite  '}{cases.noun(run)}", *lines]
        if rows
        else []
    )


def _line(row: CaseRow, width: int, paint: Paint) -> str:
    case = row.case
    sign = f"{wording.SIGNS[case.status]} {case.status}"
    passed = sum(one.status == "pass" for one in case.replicas)
    marks = [f"{passed}/{len(case.replicas)}"] if len(case.replicas) > 1 else []
    marks += ["flaky"] if case.flaky else []
    name = shorten(one_line(cases.head(case)), max(20, width - 40))
    start = f"  {paint(sign, case.status)}" + " " * (_STATUS + 4 - columns(sign))
    value = "" if case.session else f"{cases.composite(case.composite):<11}"
    line = f"{start}{value}{name}" + (f"   {', '.join(marks)}" if marks else "")
    room = width - columns(line) - 11
    if not case.expected_failure or room < 10:
        return line
    return line + paint(f"   was: {shorten(one_line(case.expected_failure), room)}", "dim")


def blocks(run: Run, width: int, paint: Paint, *, verbose: bool = False) -> list[str]:
    """The cases that did not pass, and those that passed with a flaw; all of them with `verbose`."""
    rows = cases.troubled(run)
    shown = rows if verbose else rows[:SHOWN]
    rules = cases.RuleFacts(run)
    lines = [line for row in shown for line in (*_block(row, rules, width, paint, verbose), "")]
    if len(rows) > len(shown):
        lines += [f"and {len(rows) - len(shown)} more, see {wording.report_path(run)}", ""]
    return lines


def told(run: Run, row: CaseRow, width: int = 100) -> list[str]:
    """One case, explained without colour."""
    return list(_block(row, cases.RuleFacts(run), width, painter(False), False))


def _block(row: CaseRow, rules: cases.RuleFacts, width: int, paint: Paint, verbose: bool) -> Iterator[str]:
    case = row.case
    flaky = "  (flaky)" if case.flaky else ""
    words = {"fail": "failed", "error": "could not be judged", "pass": "passed, but not in full"}
    word = "is unproven" if case.unproven_only else words[case.status]
    title = f"{wording.SIGNS[cases.outcome(case)]} {one_line(cases.head(case))} {word}{flaky}"
    yield paint(shorten(title, max(20, width)), cases.outcome(case))
    for one in _told(row, verbose):
        for label, text in _facts(case, one, rules, verbose):
            whole = label == "again"  # a command must stay whole, so that it can be copied
            for n, line in enumerate([text] if whole else fold(text, width - LABEL, 40 if verbose else 3)):
                yield "  " + paint(pad(label if n == 0 else "", LABEL - 2), "dim") + line


def _told(row: CaseRow, verbose: bool) -> list[ReplicaRow]:
    if verbose:
        return [row.replicas[n] for n, one in enumerate(row.case.replicas) if one.status != "pass"] or list(
            row.replicas
        )
    one = cases.telling(row)
    return [] if one is None else [one]


def _facts(case: Case, one: ReplicaRow, rules: cases.RuleFacts, verbose: bool) -> Iterator[tuple[str, str]]:
    yield from cases.exchange(one)
    if obeyed := cases.obedience(case, one):
        yield "obeyed", obeyed
    if case.expected_failure:
        yield "was", one_line(case.expected_failure)
    for violation in cases.violations(one):
        yield "forbidden", one_line(violation)
    for n, verdict in enumerate(cases.unpassed(one)):
        sign = wording.SIGNS[verdict.outcome]
        yield (
            "" if n else "because",
            f"{sign} {one_line(rules.reason(verdict, one))}   {rules.place(verdict.invariant)}",
        )
    if met := one.seen.met:
        more = f"; and {len(met) - 4} more" if len(met) > 4 else ""
        yield "met", one_line("; ".join(map(wording.fault, met[:4])) + more)
    if verbose:
        from holdfast.report import standards

        if known := standards.names((*standards.of_case(case), *standards.of_faults(one.seen.met))):
            yield "known as", known
        for n, event in enumerate(one.seen.trace[: calls.SHOWN]):
            yield "" if n else "calls", one_line(calls.call(event))
    yield "again", one_line(one.again)
