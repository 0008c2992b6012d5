"""Cases on a terminal: a line each, then why those that did not pass did not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from holdfast.model.run import CaseRow, ReplicaRow, Run
from holdfast.model.score import Case
from holdfast.report import calls, cases, mutations, wording
from holdfast.report.failures import LABEL, SHOWN, fact_lines
from holdfast.report.paint import Paint, painter
from holdfast.report.safe import columns, one_line, pad, shorten
from holdfast.report.short_names import listed, short_names

if TYPE_CHECKING:
    from holdfast.report.case_causes import CaseCause

MAX_ROWS = 40
"""More than this is more than a screen: then those that passed in full are only counted."""
_STATUS = 9
"""Columns of a status with its sign, at least."""


def table(run: Run, width: int, paint: Paint) -> list[str]:
    """A line a case: status, composite, scenario, and its marks; of mutations a line a type."""
    if run.score.mutation is not None:
        return list(mutations.lines(run.score.mutation))
    rows = list(run.cases)
    shown = rows if len(rows) <= MAX_ROWS else [row for row in rows if cases.short(row.case)][:MAX_ROWS]
    names = short_names((one_line(cases.head(row.case)) for row in shown), max(20, width - 40))
    room = max([_STATUS, *(len(cases.outcome(row.case)) + 4 for row in shown)])
    lines = [_line(row, names[one_line(cases.head(row.case))], room, width, paint) for row in shown]
    if len(shown) < len(rows):
        lines.append(paint(f"  {len(rows) - len(shown)} more not shown; the report has them", "dim"))
    return (
        [f"  {pad('status', room)}{'' if run.part == 'replay' else 'composite  '}{cases.noun(run)}", *lines]
        if rows
        else []
    )


def _line(row: CaseRow, name: str, column: int, width: int, paint: Paint) -> str:
    case = row.case
    outcome = cases.outcome(case)
    sign = f"{wording.SIGNS[outcome]} {outcome}"
    passed = sum(one.status == "pass" for one in case.replicas)
    marks = [f"{passed}/{len(case.replicas)}"] if len(case.replicas) > 1 else []
    marks += ["flaky"] if case.flaky else []
    start = f"  {paint(sign, outcome)}" + " " * (column - columns(sign))
    value = "" if case.session else f"{cases.composite(case.composite):<11}"
    line = f"{start}{value}{name}" + (f"   {', '.join(marks)}" if marks else "")
    room = width - columns(line) - 11
    if not case.expected_failure or room < 10:
        return line
    return line + paint(f"   was: {shorten(one_line(case.expected_failure), room)}", "dim")


def blocks(run: Run, width: int, paint: Paint, *, verbose: bool = False) -> list[str]:
    """A block a cause of the cases that did not pass, or passed with a flaw; with `verbose` every case of each."""
    if not cases.troubled(run):
        return []
    from holdfast.report.case_causes import case_causes

    found = [*case_causes(run), *case_causes(run, passed=True)]
    shown = found if verbose else found[:SHOWN]
    rules = cases.RuleFacts(run)
    lines = [line for cause in shown for line in _of_cause(run, cause, rules, width, paint, verbose)]
    if len(found) > len(shown):
        lines += [f"{_left_out(run, found[len(shown) :])}, see {wording.report_path(run)}", ""]
    return lines


def told(run: Run, row: CaseRow, width: int = 100) -> list[str]:
    """One case, explained without colour."""
    return list(_block(row, cases.RuleFacts(run), width, painter(False), False))


def _of_cause(
    run: Run, cause: CaseCause, rules: cases.RuleFacts, width: int, paint: Paint, verbose: bool
) -> Iterator[str]:
    """One case as it is; several by what they have in common, and by the first, or with `verbose` by each."""
    if len(cause.members) > 1:
        yield from _common(run, cause, rules, width, paint)
        if not verbose:
            yield from (*_facts_of(cause.first, rules, width, paint, verbose), "")
            return
        yield ""
    for row in cause.members:
        yield from (*_block(row, rules, width, paint, verbose), "")


def _left_out(run: Run, causes: Sequence[CaseCause]) -> str:
    total = sum(len(cause.members) for cause in causes)
    if total == len(causes):
        return f"and {total} more"
    return f"and {wording.plural(len(causes), 'more cause')} ({wording.plural(total, cases.noun(run))})"


def _common(run: Run, cause: CaseCause, rules: cases.RuleFacts, width: int, paint: Paint) -> Iterator[str]:
    """`✘ 12 mutations failed`, which these are, and what the rule says if it is one."""
    from holdfast.report.cause_words import faults, others

    flaky = sum(row.case.flaky for row in cause.members)
    marks = f"  ({flaky} × flaky)" if flaky else ""
    trials = f" ({wording.plural(cause.trials, 'trial')})" if cause.trials > len(cause.members) else ""
    many = wording.plural(len(cause.members), cases.noun(run))
    title = f"{wording.SIGNS[cause.outcome]} {many} {_word(cause.first.case, many=True)}{trials}{marks}"
    yield paint(shorten(title, max(20, width)), cause.outcome)
    heads = list(dict.fromkeys(one_line(cases.head(row.case)) for row in cause.members))
    facts = [(f"{cases.noun(run)}s", listed(heads, 2 * (width - LABEL)))]
    if len(cause.rules) == 1 and (says := rules.description(cause.rules[0])):
        facts.append(("rule", one_line(says)))
    if other := others(cause.reasons[0], cause.reasons):
        facts.append(("also", other))
    if under := faults(cause):
        facts.append(("faults", under))
    yield from fact_lines(facts, width, paint, False)


def _block(row: CaseRow, rules: cases.RuleFacts, width: int, paint: Paint, verbose: bool) -> Iterator[str]:
    case = row.case
    flaky = "  (flaky)" if case.flaky else ""
    title = f"{wording.SIGNS[cases.outcome(case)]} {one_line(cases.head(case))} {_word(case)}{flaky}"
    yield paint(shorten(title, max(20, width)), cases.outcome(case))
    yield from _facts_of(row, rules, width, paint, verbose)


def _word(case: Case, *, many: bool = False) -> str:
    words = {"fail": "failed", "error": "could not be judged", "pass": "passed, but not in full"}
    return ("are unproven" if many else "is unproven") if case.unproven_only else words[case.status]


def _facts_of(row: CaseRow, rules: cases.RuleFacts, width: int, paint: Paint, verbose: bool) -> Iterator[str]:
    for one in _told(row, verbose):
        yield from fact_lines(_facts(row.case, one, rules, verbose), width, paint, verbose)


def _told(row: CaseRow, verbose: bool) -> list[ReplicaRow]:
    if verbose:
        return [row.replicas[n] for n, one in enumerate(row.case.replicas) if one.status != "pass"] or list(
            row.replicas
        )
    one = cases.telling(row)
    return [] if one is None else [one]


def _facts(case: Case, one: ReplicaRow, rules: cases.RuleFacts, verbose: bool) -> Iterator[tuple[str, str]]:
    yield from cases.exchange(one)
    if obeyed := cases.obedience(one):
        yield "obeyed", obeyed
    if case.expected_failure:
        yield "was", one_line(case.expected_failure)
    for violation in cases.violations(one):
        yield "forbidden", one_line(violation)
    unpassed = cases.unpassed(one)
    # No rule says that it is unproven: the session itself was not replayed.
    unreplayed = case.unproven_only and not any(verdict.outcome == "unproven" for verdict in unpassed)
    if unreplayed:
        yield "because", one_line(case.reason)
    for n, verdict in enumerate([] if unreplayed else unpassed):
        sign = wording.SIGNS[verdict.outcome]
        yield (
            "" if n else "because",
            f"{sign} {one_line(rules.reason(verdict, one))}   {rules.place(verdict.invariant)}",
        )
    ruled = any(verdict.outcome == cases.replica_outcome(one) for verdict in unpassed)
    if one.replica.reason and not (unreplayed or obeyed or ruled or any(cases.violations(one))):
        yield "because", one_line(one.replica.reason)  # no rule gave it: the attack could not be sent completely, say
    if met := one.seen.met:
        more = f"; and {len(met) - 4} more" if len(met) > 4 else ""
        yield "met", one_line("; ".join(map(wording.fault, met[:4])) + more)
    if script := calls.scripted(one.seen.trace):
        yield "model", one_line(script)
    if verbose:
        from holdfast.report import standards

        if known := standards.names((*standards.of_case(case), *standards.of_faults(one.seen.met))):
            yield "known as", known
        for n, event in enumerate(one.seen.trace[: calls.SHOWN]):
            yield "" if n else "calls", one_line(calls.call(event))
    yield "again", one_line(one.again)
