"""Cases by their cause: those that the same rules failed, for the same reasons, are one entry."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence

from msgspec import Struct

from holdfast.model.run import CaseRow, Run
from holdfast.model.verdict import Outcome
from holdfast.report import cases
from holdfast.report.reason_kind import kind

_COUNTED = r"^\d+ of \d+ replicas passed: "


class CaseCause(Struct, frozen=True):
    """Cases that came to one outcome because of the same rules, for reasons of one kind each."""

    outcome: Outcome
    """`pass`: they passed, but not in full."""
    rules: tuple[str, ...]
    """Those that did not pass."""
    reason: str
    """That of `first`."""
    first: CaseRow
    members: Sequence[CaseRow]
    """In the order of the run."""

    @property
    def trials(self) -> int:
        """How many came to the status of their case."""
        return sum(one.status == row.case.status for row in self.members for one in row.case.replicas)


def case_causes(run: Run) -> list[CaseCause]:
    """The causes of the cases that need explaining, the worst first, then the widest. Each case is in exactly one."""
    groups: dict[Hashable, list[CaseRow]] = {}
    for row in cases.troubled(run):
        groups.setdefault((cases.outcome(row.case), *_signature(run, row)), []).append(row)
    found = [_cause(run, rows) for rows in groups.values()]
    order = {"fail": 0, "error": 1, "pass": 2}
    return sorted(found, key=lambda cause: (order[cause.first.case.status], -len(cause.members)))


def _cause(run: Run, rows: Sequence[CaseRow]) -> CaseCause:
    first = rows[0]
    return CaseCause(cases.outcome(first.case), _rules(run, first), first.case.reason, first, rows)


def _rules(run: Run, row: CaseRow) -> tuple[str, ...]:
    if _says_all(run):
        return row.case.failed
    one = cases.telling(row)
    return tuple(verdict.invariant for verdict in cases.unpassed(one)) if one else ()


def _signature(run: Run, row: CaseRow) -> tuple[Hashable, ...]:
    """By what a case is told from those of another cause."""
    if _says_all(run):
        return row.case.failed, kind(re.sub(_COUNTED, "", row.case.reason))
    one = cases.telling(row)
    if one is None:
        return (kind(row.case.reason),)
    verdicts = tuple((v.invariant, v.outcome, kind(v.reason)) for v in cases.unpassed(one))
    return verdicts, tuple(map(kind, cases.violations(one)))


def _says_all(run: Run) -> bool:
    """Whether the reason of a case has those of its rules, so that no trial need be read."""
    return run.part in ("mutation", "replay")
