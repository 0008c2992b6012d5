"""Groups failures by cause: cells in which one rule failed for one reason are one entry.

A cause is a rule, an outcome, a code and its key; or an ending that left nothing to judge, with all the rules that it
broke: one crash is one cause. Faults are listed inside a cause, because most scenarios differ in their faults, and an
agent that hides a broken tool does so however the tool breaks.
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

MOST_REASONS = 100
"""Codes and keys per rule; a rule with more gets a single cause for all of them, which bounds memory."""


class FaultName(NamedTuple):
    """A fault without its settings and firings."""

    plane: str
    target: str
    mode: str

    @property
    def text(self) -> str:
        """`error on tool search`."""
        return f"{self.mode} on {self.plane} {self.target}".rstrip(" *")


def list_fault_names(run: Run) -> dict[str, tuple[FaultName, ...]]:
    """Return the faults of each scenario."""
    return {
        scenario.name: tuple(dict.fromkeys(FaultName(i.plane, i.target, i.mode) for i in scenario.injections))
        for scenario in run.scenarios
    }


class MemberCell(Struct, frozen=True, gc=False):
    """A column of the matrix in which a rule of a cause failed; all causes share it."""

    head: str
    scenario: str
    params: dict[str, Any]
    faults: tuple[FaultName, ...]
    """The faults of its scenario, if one that the rule needs was met."""
    place: int
    """The scenario's index in the run."""

    @property
    def order(self) -> tuple[int, str]:
        return self.place, self.head


class Cause(Struct, frozen=True):
    """Cells in which one rule had one outcome for one reason, or several rules because of one ending."""

    rules: tuple[str, ...]
    """In the order of the spec; only an ending has several."""
    description: str
    """The rule's description; empty if there are several rules."""
    severity: str
    """The highest severity."""
    place: str
    """Where the rule of `first` is in the spec: `finance.yaml:12`."""
    outcome: Outcome
    """The worst outcome: fail, error or unproven."""
    reason: str
    """The reason of `first`, representative of all with its code and key."""
    code: str
    first: CellRow
    """The worst cell, then the first in the order of the run; `wording.find_telling` selects the trial to show."""
    members: Sequence[MemberCell]
    """Its cells, in the order of the run's scenarios."""
    reasons: Sequence[str]
    """The reason of each member; for a mixed cause every reason of every member."""
    member_rules: Sequence[str]
    """The rule of each member."""
    trials: int
    """How many trials have this outcome."""
    marks: Mapping[str, int]
    """How many of its cells are flaky, also fail in calm, and so on."""
    outcomes: Mapping[str, Outcome]
    """The worst outcome of each rule: an ending fails some rules and leaves others unproven."""
    mixed: bool = False
    """The rule failed for so many reasons that they are reported as one."""

    @property
    def cells(self) -> int:
        return len(self.members)

    @property
    def heads(self) -> list[str]:
        """The columns of its cells."""
        return list(dict.fromkeys(member.head for member in self.members))

    @property
    def faults(self) -> list[tuple[tuple[FaultName, ...], int]]:
        """The sets of faults under which it occurred, each with its number of cells; empty: calm, or none was met."""
        return list(Counter(member.faults for member in self.members).items())


def group_cells(run: Run, rows: Iterable[CellRow] | None = None) -> list[Cause]:
    """Return the causes of the troubled cells among `rows`, or among all, worst first.

    A troubled cell has one cause, or several if its trials failed in several ways. The result does not depend on the
    order of the cells.
    """
    grouping = Causes(run)
    for row in run.cells if rows is None else rows:
        grouping.add(row)
    return grouping.sort_causes()


def has_cause(cause: Cause, cell: Cell) -> bool:
    """Return whether the cell, split by its causes, has this cause."""
    first = cause.first.cell
    return wording.build_cause_key(cell.code, cell.key, cell.ending) == wording.build_cause_key(
        first.code, first.key, first.ending
    )


class Causes:
    """Collects cells one by one; keeps two pointers per troubled cell, and reads trials only for missing reasons."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._places = {scenario.name: n for n, scenario in enumerate(run.scenarios)}
        self._faults = list_fault_names(run)
        self._members: dict[tuple[str, bool], MemberCell] = {}
        self._rules = {rule.id: n for n, rule in enumerate(run.invariants)}
        self._groups: dict[tuple[str, str], dict[tuple[str, ...], _Group]] = {}
        """By rule and outcome, both empty for endings; then by code and key, or by the ending."""
        self.total = 0
        """Troubled cells."""

    def add(self, row: CellRow) -> None:
        """Add a cell; cells that passed or have not run are ignored."""
        cell = row.cell
        if cell.outcome not in wording.TROUBLE or wording.is_to_come(self._run, cell):
            return
        self.total += 1
        for part in wording.split_by_cause(row):
            self._add(part)

    def _add(self, row: CellRow) -> None:
        cell, reason = row.cell, wording.format_reason(row)
        # The key of an ending is the ending itself, whichever rules it broke and whether they failed or are unproven.
        of = ("", "") if cell.ending else (cell.invariant, cell.outcome)
        groups = self._groups.setdefault(of, {})
        alike = wording.build_cause_key(cell.code, cell.key, cell.ending)
        if _MANY in groups:
            alike = _MANY
        group = groups.get(alike)
        if group is None:
            group = groups[alike] = _Group()
        shares = cell.invariant not in self._run.cell_rules
        group.add(row, self._get_member(cell), reason, self._rules.get(cell.invariant, len(self._rules)), shares)
        # An agent that puts ids into its answers would give every cell a reason of its own, and each group keeps its
        # cells in memory. Beyond the limit the rule gets one group, which all later cells join.
        if len(groups) > MOST_REASONS:
            self._groups[of] = {_MANY: _join_groups(groups.values())}

    def sort_causes(self) -> list[Cause]:
        """Return the causes, worst first: by outcome, critical, weight, number of cells, and the order of the spec."""
        rules = self._rules
        ordered = sorted(
            self._build_causes(),
            key=lambda one: (
                wording.build_sort_key(one[0].first),
                -one[0].cells,
                rules.get(one[0].first.cell.invariant, len(rules)),
                one[0].first.cell.invariant,
                one[0].members[0].order,
                -one[0].trials,
                one[1],
            ),
        )
        return [cause for cause, _ in ordered]

    def _build_causes(self) -> Iterator[tuple[Cause, tuple[str, ...]]]:
        descriptions = {rule.id: rule.description for rule in self._run.invariants}
        places = wording.Places(self._run)
        for groups in self._groups.values():
            for alike, group in groups.items():
                cell = group.first.cell
                members = sorted(
                    zip(group.members, group.rules, group.reasons, strict=True),
                    key=lambda one: (one[0].order, self._rules.get(one[1], 0), one[1]),
                )
                reasons = [reason for _, _, reason in members]
                if alike == _MANY:  # one cell may have contributed several reasons
                    members = list({(member.head, rule): (member, rule, "") for member, rule, _ in members}.values())
                rules = sorted(dict.fromkeys(group.rules), key=lambda rule: (self._rules.get(rule, 0), rule))
                cause = Cause(
                    tuple(rules),
                    descriptions.get(rules[0], "") if len(rules) == 1 else "",
                    "critical" if cell.critical else cell.severity,
                    places.format_place(cell.invariant),
                    cell.outcome,
                    group.reason,
                    cell.code,
                    group.first,
                    [member for member, _, _ in members],
                    reasons,
                    [rule for _, rule, _ in members],
                    group.trials + sum(group.shared.values()),
                    {mark: min(n, len(members)) for mark, n in sorted(group.marks.items())},
                    group.outcomes,
                    alike == _MANY,
                )
                yield cause, alike

    def _get_member(self, cell: Cell) -> MemberCell:
        head = wording.format_column(cell)
        met = cell.chaos and cell.met
        # A run of a million cells has few columns: the cells of a column share one value.
        known = self._members.get((head, met))
        if known is None:
            place = self._places.get(cell.scenario, len(self._places))
            faults = self._faults.get(cell.scenario, ()) if met else ()
            known = self._members[head, met] = MemberCell(head, cell.scenario, cell.params, faults, place)
        return known


_MANY = ("", "many")
"""The key of a cause with many reasons; no cell has it."""


class _Group:
    """A cause while its cells are added."""

    __slots__ = ("first", "marks", "members", "order", "outcomes", "reason", "reasons", "rules", "shared", "trials")
    first: CellRow
    order: tuple[Any, ...]
    """The order of its first cell."""
    reason: str
    """The reason of its first cell."""

    def __init__(self) -> None:
        self.members: list[MemberCell] = []
        self.reasons: list[str] = []
        self.rules: list[str] = []
        self.outcomes: dict[str, Outcome] = {}
        self.marks: Counter[str] = Counter()
        self.trials = 0
        self.shared: dict[str, int] = {}
        """By column: trials that serve several rules of an ending, each counted once."""

    def add(self, row: CellRow, member: MemberCell, reason: str, rule: int, shares: bool) -> None:
        cell = row.cell
        order = (*wording.build_sort_key(row), *member.order, rule, cell.invariant)
        if not self.members or order < self.order:
            # A copy that has read no trials: it does not keep alive what others read from this row.
            self.first, self.order, self.reason = CellRow(cell, copy(row.trials)), order, reason
        self.members.append(member)
        self.reasons.append(reason)
        self.rules.append(cell.invariant)
        self._note_outcome(cell.invariant, cell.outcome)
        self.marks.update(wording.list_marks(cell))
        passes = 0 if cell.ending else cell.passes
        trials = {"fail": cell.fails, "error": cell.errors}.get(cell.outcome, passes + cell.unproven)
        if cell.causes:  # the cell has several causes
            trials = cell.causes[0].trials
        # Rules that share the trials of a scenario all break on the same crash: its trials count once for the column,
        # and not once for each rule.
        if cell.ending and shares:
            self.shared[member.head] = max(self.shared.get(member.head, 0), trials)
        else:
            self.trials += trials

    def _note_outcome(self, rule: str, outcome: Outcome) -> None:
        self.outcomes[rule] = min(self.outcomes.get(rule, outcome), outcome, key=wording.TROUBLE.__getitem__)

    def join(self, other: _Group) -> None:
        if not self.members or other.order < self.order:
            self.first, self.order, self.reason = other.first, other.order, other.reason
        self.members += other.members
        self.reasons += other.reasons
        self.rules += other.rules
        for rule, outcome in other.outcomes.items():
            self._note_outcome(rule, outcome)
        self.marks += other.marks
        self.trials += other.trials
        for head, trials in other.shared.items():
            self.shared[head] = max(self.shared.get(head, 0), trials)


def _join_groups(groups: Iterable[_Group]) -> _Group:
    whole = _Group()
    for group in groups:
        whole.join(group)
    return whole
