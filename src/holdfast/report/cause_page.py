"""Causes as the page shows them: what did not hold, each with the list of its cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any
from urllib.parse import quote

from holdfast.model.run import Run
from holdfast.report import cause_words, wording
from holdfast.report.causes import Cause
from holdfast.report.failures import cell_facts
from holdfast.report.safe import one_line

LISTED, MEMBERS, ROOM = 100, 100, 2_000
"""Causes in the page, cells of one that are listed, and of all of them; the matrix has the rest."""
REASON = 300
"""Characters of a reason."""


def items(run: Run, causes: Sequence[Cause]) -> list[dict[str, Any]]:
    """What the template shows of each cause; a cause of one cell is a link to it."""
    room = ROOM
    made = []
    for number, cause in enumerate(causes[:LISTED], 1):
        members = [] if cause.cells == 1 else list(_members(cause, min(MEMBERS, room)))
        room -= len(members)
        made.append(_item(run, cause, number) | {"members": members, "more": cause.cells - len(members)})
    return made


def _item(run: Run, cause: Cause, number: int) -> dict[str, Any]:
    alone, cell = cause.cells == 1, cause.first.cell
    return {
        "number": number,
        "alone": alone,
        "sign": wording.SIGNS[cause.outcome],
        "outcome": cause.outcome,
        "rule": cause_words.subject(cause),
        "key": _key(cause.member_rules[0], cause.members[0].head),
        "where": cause.members[0].head if alone else cause_words.where(cause),
        "reason": one_line(cause.reason)[:REASON] + cause_words.because(cause),
        "marks": ", ".join(wording.marks(cell)) if alone else cause_words.marks(cause),
        "severity": cause.severity,
        "place": one_line(cause.place),
        "facts": [] if alone else list(_facts(run, cause)),
        "next": wording.next_step(run, cause.first) if alone and cause.outcome != "fail" else "",
    }


def _facts(run: Run, cause: Cause) -> Iterator[tuple[str, str]]:
    """One answer that stands for all; the reason stands above it."""
    trial = wording.telling(cause.first)
    facts = cause_words.facts(cause, cell_facts(run, cause.first, trial))
    yield from (fact for fact in facts if fact[0] != "because")


def _members(cause: Cause, most: int) -> Iterator[dict[str, str]]:
    same = len(set(cause.reasons)) == 1
    several = len(cause.rules) > 1
    for member, rule, reason in islice(zip(cause.members, cause.member_rules, cause.reasons, strict=True), most):
        yield {
            "key": _key(rule, member.head),
            "head": one_line(f"{rule} in {member.head}" if several else member.head),
            "faults": one_line(", ".join(fault.shown for fault in member.faults)),
            "reason": "" if same else one_line(reason)[:REASON],
        }


def _key(rule: str, head: str) -> str:
    """How the page's address names a cell."""
    return quote(f"{rule}|{head}")
