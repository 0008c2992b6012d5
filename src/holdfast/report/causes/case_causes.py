"""Groups cases by cause: the same rules failed for the same reasons."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence

from msgspec import Struct

from holdfast.model.run import CaseRow, Run
from holdfast.model.verdict import Outcome
from holdfast.report import cases
from holdfast.report.causes.cell_causes import FaultName, list_fault_names


class CaseCause(Struct, frozen=True):
    """Cases with one outcome because the same rules failed for the same kinds of reason."""

    outcome: Outcome
    """`pass`: they passed, but not fully."""
    rules: tuple[str, ...]
    """The rules that did not pass."""
    reason: str
    """The reason of `first`."""
    first: CaseRow
    members: Sequence[CaseRow]
    """In the order of the run."""
    reasons: Sequence[str]
    """The rules' reasons for each member."""
    weather: Mapping[str, tuple[FaultName, ...]]
    """The faults of every scenario."""

    @property
    def faults(self) -> list[tuple[tuple[FaultName, ...], int]]:
        """The sets of faults of its cases, each with the number of cases; the empty set is calm."""
        return list(Counter(self.weather[row.case.scenario] for row in self.members).items())

    @property
    def trials(self) -> int:
        """How many trials have the status of their case."""
        return sum(one.status == row.case.status for row in self.members for one in row.case.replicas)


def group_cases(run: Run, *, passed: bool = False) -> list[CaseCause]:
    """Return the causes of cases that did not pass: worst first, then largest. Each case belongs to exactly one.

    `passed`: the causes of cases that passed, but not fully, instead.
    """
    groups: dict[Hashable, list[tuple[CaseRow, str]]] = {}
    for row in cases.list_troubled(run):
        if (row.case.status == "pass") != passed:
            continue
        signature, reason = _build_signature(run, row)
        groups.setdefault((cases.get_outcome(row.case), *signature), []).append((row, reason))
    causes = [_build_cause(run, rows) for rows in groups.values()]
    return sorted(causes, key=lambda cause: (cause.first.case.status != "fail", -len(cause.members)))


def _build_cause(run: Run, rows: Sequence[tuple[CaseRow, str]]) -> CaseCause:
    first = rows[0][0]
    members, reasons = zip(*rows, strict=True)
    outcome, weather = cases.get_outcome(first.case), defaultdict(tuple, list_fault_names(run))
    return CaseCause(outcome, _list_rules(run, first), first.case.reason, first, members, reasons, weather)


def _list_rules(run: Run, row: CaseRow) -> tuple[str, ...]:
    if _is_reason_complete(run):
        return row.case.failed
    one = cases.find_telling(row)
    return tuple(verdict.invariant for verdict in cases.list_unpassed(one)) if one else ()


def _build_signature(run: Run, row: CaseRow) -> tuple[tuple[Hashable, ...], str]:
    """Build the key that distinguishes the cause of a case, with the reasons behind it."""
    case = row.case
    if _is_reason_complete(run):
        deciding = next((one for one in case.replicas if one.status == case.status), None)
        return (case.failed, case.causes), deciding.reason if deciding else case.reason
    one = cases.find_telling(row)
    if one is None:
        return case.causes, case.reason
    unpassed = cases.list_unpassed(one)
    # A task may fail in several ways in one trial: its cause is all of its verdicts and violations together.
    verdicts = tuple((v.outcome, v.cause) for v in unpassed)
    forbidden = tuple((rule.rule, bool(rule.error)) for rule in one.seen.forbidden if rule.violated or rule.error)
    reasons = (*cases.list_violations(one), *(v.reason for v in unpassed))
    return (verdicts, forbidden), "; ".join(reasons)


def _is_reason_complete(run: Run) -> bool:
    """Return whether a case's reason contains those of its rules, so no trial needs to be read."""
    return run.part in ("mutation", "replay")
