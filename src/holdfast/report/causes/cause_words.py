"""Describes causes in words and as JSON: where they occurred, under which faults, and their representative cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from holdfast.model.run import Run
from holdfast.model.shorten import shorten
from holdfast.report import cases, wording
from holdfast.report.causes.case_causes import CaseCause, group_cases
from holdfast.report.causes.cell_causes import Cause, group_cells
from holdfast.report.safe import to_one_line

FAULTS = 4
"""Sets of faults that are named; the others are counted."""


_NAMED = 3
"""Rules of one cause that a title names; if there are more, it shows their number."""
_OTHER = 100
"""Characters of another reason."""


def format_start(cause: Cause) -> str:
    """`✘ never-fabricate · 12 scenarios`, the start of a title."""
    return f"{wording.SIGNS[cause.outcome]} {to_one_line(format_subject(cause))} · {format_where(cause)}"


def format_subject(cause: Cause) -> str:
    """Return the rules, or how many an ending broke: `answers, ? true-price`, `4 rules, ? 1 more`."""
    if len(cause.rules) <= _NAMED:
        return ", ".join(mark_rules(cause))
    alike = sum(cause.outcomes[rule] == cause.outcome for rule in cause.rules)
    others = Counter(outcome for outcome in cause.outcomes.values() if outcome != cause.outcome)
    more = [f"{wording.SIGNS[outcome]} {count} more" for outcome, count in others.items()]
    return ", ".join((wording.format_count(alike, "rule"), *more))


def mark_rules(cause: Cause) -> list[str]:
    """Return the rules, first those with the outcome of the cause; the others with their own sign."""
    rules = sorted(cause.rules, key=lambda rule: wording.TROUBLE[cause.outcomes[rule]])
    signs = {
        rule: "" if outcome == cause.outcome else f"{wording.SIGNS[outcome]} "
        for rule, outcome in cause.outcomes.items()
    }
    return [f"{signs[rule]}{rule}" for rule in rules]


def format_where(cause: Cause) -> str:
    """`12 scenarios`, plus the trials if there are more; the name if there is one; cells if a scenario has several."""
    columns = len(cause.heads)
    noun = "scenario" if len({member.scenario for member in cause.members}) == columns else "cell"
    trials = f" ({wording.format_count(cause.trials, 'trial')})" if cause.trials > columns else ""
    return (to_one_line(cause.heads[0]) if columns == 1 else wording.format_count(columns, noun)) + trials


def format_marks(cause: Cause) -> str:
    """`2 × flaky, simulated`; a mark that all cells have needs no number."""
    texts = [mark if count == cause.cells else f"{count} × {mark}" for mark, count in cause.marks.items()]
    return ", ".join(texts)


def format_faults(cause: Cause | CaseCause) -> str:
    """`4 × error on tool search, 2 × rate_limit on llm`; empty if all cells have the same faults."""
    by_count = sorted(cause.faults, key=lambda entry: -entry[1])
    if len(by_count) < 2:
        return ""
    texts = [
        f"{count} × {' + '.join(fault.text for fault in names) or 'none met'}" for names, count in by_count[:FAULTS]
    ]
    return to_one_line(", ".join(texts) + (f", and {len(by_count) - FAULTS} more" if len(by_count) > FAULTS else ""))


def format_because(cause: Cause) -> str:
    """Return what to add to the shown reason; for an ending nothing, because each rule words it differently."""
    text = format_also(cause)
    return f"   ({text})" if text else ""


def format_also(cause: Cause) -> str:
    """Format how many other reasons the cells give."""
    if len(cause.rules) > 1 and not cause.mixed:
        return ""
    return format_others(cause.reason, cause.reasons, "other reason" if cause.mixed else "other wording")


def format_others(first: str, reasons: Iterable[str], noun: str = "other wording") -> str:
    """Return the number of reasons other than the shown one, with an example if it differs in more than numbers."""
    others = [reason for reason in dict.fromkeys(reasons) if reason != first]
    if not others:
        return ""
    unlike = next((reason for reason in others if _keep_letters(reason) != _keep_letters(first)), "")
    return wording.format_count(len(others), noun) + (f", as: {to_one_line(shorten(unlike, _OTHER))}" if unlike else "")


def _keep_letters(reason: str) -> str:
    """Return the letters of a reason: differences in numbers do not count."""
    return "".join(filter(str.isalpha, reason))


def list_facts(cause: Cause, of_first: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the facts of a cause, around those of its first cell."""
    if len(cause.rules) > _NAMED:
        yield "rules", to_one_line(", ".join(mark_rules(cause)))
    elif cause.description:
        yield "rule", to_one_line(cause.description)
    under = format_faults(cause)
    for label, text in of_first:
        if label in ("next", "reproduce") and under:
            yield "faults", under
            under = ""
        yield label, text + format_because(cause) if label == "because" else text
    if under:
        yield "faults", under


def format_left_out(causes: Sequence[Cause]) -> str:
    """`and 3 more causes (12 cells)`; for single cells only their number."""
    if all(cause.cells == 1 for cause in causes):
        return f"and {len(causes)} more"
    cells = len(
        {(rule, one.head) for cause in causes for rule, one in zip(cause.member_rules, cause.members, strict=True)}
    )
    return f"and {wording.format_count(len(causes), 'more cause')} ({wording.format_count(cells, 'cell')})"


def build_entries(run: Run) -> Iterator[dict[str, Any]]:
    """Yield the causes of all cells, worst first, then those of the cases."""
    every_cause = group_cells(run)[::-1] if wording.has_cells(run) else []
    while every_cause:  # each is released once it is written, with the trials read for it
        yield _build_cell_cause(run.part if run.part in ("chaos", "hunt") else "contract", every_cause.pop())
    if run.by_cases:
        yield from (_build_case_cause(run, cause) for cause in group_cases(run))


def _build_cell_cause(part: str, cause: Cause) -> dict[str, Any]:
    trial = wording.find_telling(cause.first)
    return {
        "part": part,
        "rules": cause.rules,
        "description": cause.description,
        "severity": cause.severity,
        "place": cause.place,
        "outcome": cause.outcome,
        "reason": cause.reason,
        "code": cause.code,
        "key": cause.first.cell.key,
        "one_reason": not cause.mixed,
        "trials": cause.trials,
        "faults": _build_faults(cause),
        "cells": [
            {"invariant": rule, "scenario": member.scenario, "params": member.params}
            for rule, member in zip(cause.member_rules, cause.members, strict=True)
        ],
        "first": {"trial": trial.id, "again": trial.again} if trial is not None else None,
    }


def _build_faults(cause: Cause | CaseCause) -> list[dict[str, Any]]:
    """Return the sets of faults under which it occurred, with the number of cells or cases for each."""
    noun = "cells" if isinstance(cause, Cause) else "cases"
    return [{"faults": [name._asdict() for name in names], noun: count} for names, count in cause.faults]


def _build_case_cause(run: Run, cause: CaseCause) -> dict[str, Any]:
    one = cases.find_telling(cause.first)
    descriptions = {rule.id: rule.description for rule in run.invariants}
    return {
        "part": run.part,
        "rules": cause.rules,
        "description": descriptions.get(cause.rules[0], "") if len(cause.rules) == 1 else "",
        "outcome": cause.outcome,
        "reason": cause.reason,
        "codes": list(dict.fromkeys(one.code for one in cause.first.case.causes)),
        "trials": cause.trials,
        "faults": _build_faults(cause),
        "cases": [
            {
                "case": cases.format_head(row.case),
                "scenario": row.case.scenario,
                "params": row.case.params,
                "trials": [one.trial for one in row.case.replicas],
            }
            for row in cause.members
        ],
        "first": {"trial": one.replica.trial, "again": one.again} if one is not None else None,
    }
