"""Failures by their cause: the cells in which one rule did not hold for one reason are one entry.

A cause is a rule, an outcome and a kind of reason. Under which faults it came is told inside it: most scenarios differ
in their faults, and an agent that says nothing of a broken tool does so whichever way the tool breaks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

from msgspec import Struct

from holdfast.model.run import CellRow, Run
from holdfast.model.score import Cell
from holdfast.model.verdict import Outcome
from holdfast.report import wording
from holdfast.report.reason_kind import kind

MOST_REASONS = 100
"""Kinds of reasons of one rule; one that has more gets a single cause for all of them, so that memory has a bound."""


class FaultName(NamedTuple):
    """A fault without its settings and firings."""

    plane: str
    target: str
    mode: str

    @property
    def shown(self) -> str:
        """`error on tool search`."""
        return f"{self.mode} on {self.plane} {self.target}".rstrip(" *")


class MemberCell(Struct, frozen=True, gc=False):
    """A column of the matrix in which the rule of a cause did not hold; shared by all causes."""

    head: str
    scenario: str
    params: dict[str, Any]
    faults: tuple[FaultName, ...]
    """Those of its scenario, if one that the rule needs was met."""
    place: int
    """Of the scenario in the run."""

    @property
    def order(self) -> tuple[int, str]:
        return self.place, self.head


class Cause(Struct, frozen=True):
    """Cells in which one rule came to one outcome for one reason."""

    rule: str
    description: str
    severity: str
    place: str
    """Where in the spec the rule stands: `finance.yaml:12`."""
    outcome: Outcome
    """fail, error or unproven."""
    reason: str
    """That of `first`; it stands for those that differ in what they quote and in numbers."""
    first: CellRow
    """The first of its cells, in the order of the run; `wording.telling` gives the trial that tells best."""
    members: Sequence[MemberCell]
    """Its cells, in the order of the run's scenarios."""
    reasons: Sequence[str]
    """The reason of each member."""
    trials: int
    """How many came to this outcome."""
    marks: Mapping[str, int]
    """How many of its cells are flaky, fail in calm too, and so on."""
    mixed: bool = False
    """The rule failed for so many reasons that they are told as one."""

    @property
    def cells(self) -> int:
        return len(self.members)

    @property
    def faults(self) -> list[tuple[tuple[FaultName, ...], int]]:
        """The sets of faults under which it came, each with the number of its cells; none: calm, or none was met."""
        return list(Counter(member.faults for member in self.members).items())


def causes(run: Run, rows: Iterable[CellRow] | None = None) -> list[Cause]:
    """The causes of the troubled cells among `rows`, or among all, the worst first.

    Each troubled cell is in exactly one. In whatever order the cells come, the result is the same.
    """
    grouping = Causes(run)
    for row in run.cells if rows is None else rows:
        grouping.add(row)
    return grouping.sorted()


class Causes:
    """Takes cells one by one; holds two pointers a troubled cell, and reads no trial of one that says its reason."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._places = {scenario.name: n for n, scenario in enumerate(run.scenarios)}
        self._faults = {
            scenario.name: tuple(dict.fromkeys(FaultName(i.plane, i.target, i.mode) for i in scenario.injections))
            for scenario in run.scenarios
        }
        self._members: dict[tuple[str, bool], MemberCell] = {}
        self._groups: dict[tuple[str, Outcome], dict[str, _Group]] = {}
        self.total = 0
        """Troubled cells."""

    def add(self, row: CellRow) -> None:
        """A cell; one that held, or that is still to be run, is passed over."""
        cell = row.cell
        if cell.outcome not in wording.TROUBLE or wording.to_come(self._run, cell):
            return
        self.total += 1
        reason = wording.why(row)
        groups = self._groups.setdefault((cell.invariant, cell.outcome), {})
        alike = _MANY if _MANY in groups else kind(reason) or reason
        group = groups.get(alike)
        if group is None:
            group = groups[alike] = _Group()
        group.add(row, self._member(cell), reason)
        if len(groups) > MOST_REASONS:
            self._groups[cell.invariant, cell.outcome] = {_MANY: _joined(groups.values())}

    def sorted(self) -> list[Cause]:
        """The causes, the worst first: by outcome, critical, weight, how many cells, and the order of the spec."""
        rules = {rule.id: n for n, rule in enumerate(self._run.invariants)}
        found = sorted(
            self._found(),
            key=lambda one: (
                wording.badness(one[0].first),
                -one[0].cells,
                rules.get(one[0].rule, len(rules)),
                one[0].rule,
                one[0].members[0].order,
                one[1],
            ),
        )
        return [cause for cause, _ in found]

    def _found(self) -> Iterator[tuple[Cause, str]]:
        known = {rule.id: rule for rule in self._run.invariants}
        places = wording.Places(self._run)
        for (rule, outcome), groups in self._groups.items():
            about = known.get(rule)
            for alike, group in groups.items():
                first, cell = group.first, group.first.cell
                pairs = sorted(zip(group.members, group.reasons, strict=True), key=lambda pair: pair[0].order)
                yield (
                    Cause(
                        rule,
                        about.description if about else "",
                        "critical" if cell.critical else cell.severity,
                        places.of(rule),
                        outcome,
                        group.reason,
                        first,
                        [member for member, _ in pairs],
                        [reason for _, reason in pairs],
                        group.trials,
                        dict(sorted(group.marks.items())),
                        alike == _MANY,
                    ),
                    alike,
                )

    def _member(self, cell: Cell) -> MemberCell:
        head = wording.column(cell)
        met = cell.chaos and cell.met
        found = self._members.get((head, met))
        if found is None:
            place = self._places.get(cell.scenario, len(self._places))
            faults = self._faults.get(cell.scenario, ()) if met else ()
            found = self._members[head, met] = MemberCell(head, cell.scenario, cell.params, faults, place)
        return found


_MANY = "\0many"
"""The key of a cause of many reasons; no reason has it."""


class _Group:
    """A cause while its cells come in."""

    __slots__ = ("first", "marks", "members", "order", "reason", "reasons", "trials")
    first: CellRow
    order: tuple[int, str]
    """Of its first cell."""
    reason: str
    """Of its first cell."""

    def __init__(self) -> None:
        self.members: list[MemberCell] = []
        self.reasons: list[str] = []
        self.marks: Counter[str] = Counter()
        self.trials = 0

    def add(self, row: CellRow, member: MemberCell, reason: str) -> None:
        cell = row.cell
        if not self.members or member.order < self.order:
            # A copy that has read no trials: what others read of this row is not held.
            self.first, self.order, self.reason = CellRow(cell, copy(row.trials)), member.order, reason
        self.members.append(member)
        self.reasons.append(reason)
        self.marks.update(wording.marks(cell))
        self.trials += {"fail": cell.fails, "error": cell.errors}.get(cell.outcome, cell.passes + cell.unproven)

    def join(self, other: _Group) -> None:
        if not self.members or other.order < self.order:
            self.first, self.order, self.reason = other.first, other.order, other.reason
        self.members += other.members
        self.reasons += other.reasons
        self.marks += other.marks
        self.trials += other.trials


def _joined(groups: Iterable[_Group]) -> _Group:
    whole = _Group()
    for group in groups:
        whole.join(group)
    return whole
