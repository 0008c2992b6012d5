"""The tally: takes verdicts in any order and yields cells as soon as they are decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from holdfast.errors import HarnessError
from holdfast.model.observation import Observation
from holdfast.model.scenario import Scenario, find_needed_injections, is_applicable
from holdfast.model.score import Cell, CellCause, Interval
from holdfast.model.spec import Invariant, Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.verdict import Verdict
from holdfast.plan import CellKey, Plan
from holdfast.score.attacks import AttackTally, judge_attack
from holdfast.score.cases import Cases
from holdfast.score.cell import CellCount, Decision, Tries
from holdfast.score.intervals import compute_wilson
from holdfast.score.run_totals import BadEndings, SpendingTally
from holdfast.score.sequential import SequentialCount
from holdfast.score.task_cases import TaskCases

_rate = lru_cache(maxsize=4096)(compute_wilson)


class _Column:
    """A rule, shared by all of its cells."""

    def __init__(self, rule: Invariant, spec: Spec, plan: Plan, offset: int) -> None:
        self.rule = rule
        self.how = spec.get_aggregation(rule)
        self.offset = offset
        self.places: Mapping[Task, int] = {task: place for place, task in enumerate(plan.get_tasks(rule.id))}
        self.expected = (spec.replicas,) * len(self.places)
        """By task: the verdicts that each of its cells expects, unless single trials were selected."""
        self.weight = rule.severity_weight
        self.critical = rule.critical


class _Row:
    """A scenario, shared by all of its cells."""

    def __init__(self, scenario: Scenario, plan: Plan, offset: int) -> None:
        self.scenario = scenario
        self.offset = offset
        self.chaos = not scenario.calm
        self.needs = {when: find_needed_injections(when, scenario) for when in plan.whens}
        self.ran = False
        self.met = False

    def note_faults(self, observation: Observation) -> None:
        """Note whether one of its faults was met in this trial."""
        if not self.met:
            indexes = range(len(self.scenario.injections))
            self.met = any(fault.effect == "met" and fault.index in indexes for fault in observation.ledger)


class Tally:
    """Combines verdicts into cells. The order of verdicts never changes the result."""

    def __init__(self, spec: Spec, plan: Plan) -> None:
        self.spec = spec
        self.plan = plan
        self.trials = 0
        """Trials so far, each counted once, whatever the number of rules it serves."""
        self.lost = False
        """Whether a cell has failed, whatever the remaining verdicts are."""
        self.lost_critical = False
        width = len(spec.params)
        self._columns = {r.id: _Column(r, spec, plan, i * width) for i, r in enumerate(plan.invariants)}
        height = len(plan.invariants) * width
        self._rows = {s.name: _Row(s, plan, i * height) for i, s in enumerate(plan.scenarios)}
        self._open: dict[int, CellCount] = {}
        self._done: list[Decision | None] = [None] * (height * len(plan.scenarios))
        self._decides_at_once = plan.whole and not plan.sequential
        """Whether a single verdict can decide a cell that expects one."""
        self._same: dict[Tries, Tries] = {}
        self._passes: dict[Decision, Decision] = {}
        self.attacks = AttackTally()
        self.spending = SpendingTally()
        self.control_spending = SpendingTally()
        """The cost of the preflight and of controls: paid, but not part of the contract."""
        self.endings = BadEndings(plan.invariants)
        self._cased = spec.by_cases
        by_task = spec.part in ("mutation", "replay")
        self.cases = TaskCases(spec, plan) if by_task else Cases(spec, plan)
        self.decides_cases = by_task or (self._cased and plan.decides_cases)
        """Whether cases decide; otherwise cells do."""

    @property
    def lost_case(self) -> bool:
        """Whether a case has failed, whatever the remaining trials do."""
        return self._cased and self.cases.lost

    def add_trial(self, trial: Trial, observation: Observation, verdicts: Sequence[Verdict]) -> list[int]:
        """Add a trial with all of its verdicts, and return the positions of the cells it decided."""
        if observation.trace or observation.ledger:
            self.note_trial(trial, observation)
        if trial.scenario.name not in self._rows:  # a planner invented its scenario: the plan has no cell for it
            self.trials += bool(verdicts)
            return []
        if self._cased:
            self.cases.add(trial, observation, verdicts)
        if verdicts:
            self.trials += 1
            if observation.turns and observation.turns[-1].ending != "answered":
                self.endings.add(observation, verdicts)
        decided = []
        for verdict in verdicts:
            position = self._add_verdict(trial, observation, verdict)
            if position is not None:
                decided.append(position)
        return decided

    def note_trial(self, trial: Trial, observation: Observation) -> None:
        """Note a trial as a whole: call it once per trial, whatever the number of its verdicts."""
        if observation.trace:
            (self.control_spending if trial.kind == "control" else self.spending).add(observation.trace)
        if observation.asked_again is not None:
            self.control_spending.add(observation.asked_again.trace)
        # Controls and the preflight cost money but are not part of the contract, so their spending is kept apart.
        # Attacks count only in the contract's own trials.
        row = self._rows.get(trial.scenario.name)
        if observation.ledger and row is not None and trial.kind == "contract":
            won = judge_attack(observation, row.scenario)
            if won is not None:
                self.attacks.add_trial(trial, won)

    def add(self, trial: Trial, observation: Observation, verdict: Verdict) -> Cell | None:
        """Add a single verdict and return the cell if this decided it."""
        position = self._add_verdict(trial, observation, verdict)
        if trial.invariant != "*" or self.plan.get_rules(trial)[0].id == verdict.invariant:
            self.trials += 1
        return None if position is None else self.build_cell(position)

    def build_cell(self, position: int, decision: Decision | None = None) -> Cell:
        """Return a cell with its decision, or with what is known so far."""
        key = self.plan.get_key(position)
        row, column = self._rows[key.scenario], self._columns[key.invariant]
        return _build_cell(row, column, self.spec.params[key.params], decision or self._get_decision(key, row, column))

    def _add_verdict(self, trial: Trial, observation: Observation, verdict: Verdict) -> int | None:
        """Count a verdict; return the cell's position if this decides it."""
        column, row = self._columns[verdict.invariant], self._rows[trial.scenario.name]
        position = row.offset + column.offset + self.plan.get_params_index(trial.params)
        cell = self._open.get(position)
        if cell is None:
            is_single = column.expected == (1,) and self._decides_at_once and self._done[position] is None
            if is_single and verdict.outcome == "pass" and not row.chaos:
                # A calm cell with a single trial, which passed: most cells of a large matrix. To count its verdict like
                # the others would take a quarter of the time of an inline cell.
                passed = Decision("pass", passes=1, simulated=observation.simulated, concurrent=observation.concurrent)
                self._done[position] = self._passes.setdefault(passed, passed)
                row.ran = True
                return position
            cell = self._open_cell(position, column)
        cell.add_verdict(column.places[trial.task], trial.replica, verdict)
        if row.chaos:
            if not cell.met:
                cell.note_faults(observation, row.scenario, row.needs[column.rule.when])
                row.note_faults(observation)
            if observation.ledger and judge_attack(observation, row.scenario) is not None:
                self.attacks.add_verdict(verdict.outcome)
        cell.concurrent = cell.concurrent or observation.concurrent
        cell.simulated = cell.simulated or observation.simulated
        row.ran = True
        # With `all` one failure is final before the other replicas have ended, so fail-fast can stop here. Every other
        # aggregation is known only when the cell is complete.
        if verdict.outcome == "fail" and column.how.kind == "all":
            self._mark_lost(column)  # no other verdict can change it
        # After a sequential test has decided, verdicts may still arrive, because other cells need their trials.
        first = self._done[position] is None
        if first and not cell.is_newly_decided():
            return None
        if not self.plan.sequential:
            del self._open[position]
        decision = self._decide(row, column, cell)
        if decision.outcome == "pass":  # most are equal: a large matrix stores one
            decision = self._passes.setdefault(decision, decision)
        elif decision.outcome == "fail":
            self._mark_lost(column)
        self._done[position] = decision
        return position if first else None

    def _open_cell(self, position: int, column: _Column) -> CellCount:
        key = self.plan.get_key(position)
        if self._done[position] is not None:
            raise HarnessError(f"one verdict too many for {key.invariant} in {key.scenario}", code="bug")
        expected = column.expected if self.plan.whole else self.plan.count_by_task(key)
        cell = self._open[position] = self._create_counter(column, expected)
        return cell

    def needs_trial(self, trial: Trial) -> bool:
        """Return whether the trial would help: one of its cells, or its case, is not decided by earlier replicas."""
        row = self._rows[trial.scenario.name]
        number = self.plan.get_params_index(trial.params)
        for rule in self.plan.get_rules(trial):
            column = self._columns[rule.id]
            cell = self._open.get(row.offset + column.offset + number)
            if cell is None or cell.needs_replica(column.places[trial.task]):
                return True
            # A sequential run would stop here, because the rule is decided. But a cell whose fault was not met proves
            # nothing, and a fault with a probability may be met in the next replica.
            if row.needs[rule.when] and not cell.met and self._decide(row, column, cell).outcome == "unproven":
                return True  # it passes, except for a fault that another replica may meet
        return self._cased and self.cases.needs_replica(trial)

    def _mark_lost(self, column: _Column) -> None:
        self.lost = True
        self.lost_critical = self.lost_critical or column.critical

    def iter_cells(self) -> Iterator[Cell]:
        """Yield every cell in plan order: decided, n/a, and unfinished as far as they got."""
        calm = self._find_calm_failures()
        for key in self.plan.cells:
            column, row = self._columns[key.invariant], self._rows[key.scenario]
            decision = self._get_decision(key, row, column)
            marked = row.chaos and decision.outcome == "fail" and (key.invariant, key.params) in calm
            yield _build_cell(row, column, self.spec.params[key.params], decision, marked)

    def get_deciding_prompts(self, position: int) -> int:
        """Return the deciding prompts of the cell, as bits; 0 if it passed, or its faults were not met."""
        key = self.plan.get_key(position)
        decision = self._get_decision(key, self._rows[key.scenario], self._columns[key.invariant])
        return decision.failed if decision.outcome == "fail" else decision.undecided

    def iter_decisions(self) -> Iterator[tuple[int, _Column, bool, Decision]]:
        """Yield every cell in plan order: position, rule, whether its scenario has faults, and its decision."""
        columns = [column for column in self._columns.values() for _ in self.spec.params]
        rows, width, done = list(self._rows.values()), len(columns), self._done
        for position in self.plan.positions:
            row, column = rows[position // width], columns[position % width]
            decision = done[position]
            yield position, column, row.chaos, decision or self._get_decision(self.plan.get_key(position), row, column)

    def find_vacuous_scenarios(self, *, unasked: bool = False) -> tuple[str, ...]:
        """Return the chaos scenarios in which no trial met any fault: those that ran, or in which no rule is judged.

        `unasked`: a budget left trials out; scenarios without any trial are then not listed.
        """
        unmet = [(name, row) for name, row in self._rows.items() if row.chaos and not row.met]
        left_out = (
            {key.scenario for key in self.plan.cells if self.plan.count_expected(key)} if unasked and unmet else ()
        )
        # Scenarios in which no rule is judged: only for the complete contract, because a selection of rules proves
        # nothing.
        whole = len(self.plan.invariants) == len(self.spec.invariants)
        idle = {
            name
            for name, row in unmet
            if whole and not any(is_applicable(when, row.scenario) for when in self.plan.whens)
        }
        return tuple(name for name, row in unmet if row.ran or name in left_out or name in idle)

    def _create_counter(self, column: _Column, expected: Sequence[int]) -> CellCount:
        return SequentialCount(expected, column.how) if self.plan.sequential else CellCount(expected)

    def _decide(self, row: _Row, column: _Column, cell: CellCount) -> Decision:
        return cell.decide(column.how, row.scenario, row.needs[column.rule.when], self._same)

    def _get_decision(self, key: CellKey, row: _Row, column: _Column) -> Decision:
        position = row.offset + column.offset + key.params
        decision = self._done[position]
        if decision is not None:
            return decision
        if not self.plan.is_applicable(key):
            return Decision("n/a", CellCause(f"`when: {column.rule.when}` is not met here", "not-applicable"))
        by_task = self.plan.count_by_task(key)
        if not any(by_task):
            return Decision("unproven", CellCause("no trial ran", "not-asked"))
        return self._decide(row, column, self._open.get(position) or self._create_counter(column, by_task))

    def _find_calm_failures(self) -> set[tuple[str, int]]:
        """Return the rule and params of every cell that failed in calm."""
        failing: set[tuple[str, int]] = set()
        if not self.lost and not self._open:
            return failing  # nothing failed: a large matrix need not be walked
        for key in self.plan.cells:
            row = self._rows[key.scenario]
            if not row.chaos and self._get_decision(key, row, self._columns[key.invariant]).outcome == "fail":
                failing.add((key.invariant, key.params))
        return failing


def _build_cell(
    row: _Row, column: _Column, params: dict[str, Any], decision: Decision, fails_in_calm: bool = False
) -> Cell:
    tried = decision.passes + decision.fails
    rate: Interval | None = _rate(decision.passes, tried) if tried else None
    return Cell(
        column.rule.id,
        row.scenario.name,
        column.rule.severity,
        column.weight,
        decision.outcome,
        column.critical,
        params,
        decision.why.reason,
        decision.flaky,
        decision.passes,
        decision.fails,
        decision.errors,
        decision.unproven,
        decision.met,
        row.chaos,
        fails_in_calm,
        decision.simulated,
        decision.concurrent,
        rate,
        decision.why.ending,
        decision.why.code,
        decision.why.key,
        decision.causes,
    )
