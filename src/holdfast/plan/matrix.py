"""The plan of a run: rules x scenarios x prompts x params x replicas, made only when asked for."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from holdfast.errors import UsageError
from holdfast.model.codec import canonical, digest
from holdfast.model.scenario import Scenario
from holdfast.model.spec import Invariant, Spec, When
from holdfast.model.task import Task
from holdfast.model.trial import CONTROL, Trial
from holdfast.model.when import applies
from holdfast.plan.checks import traits_of
from holdfast.plan.ids import agent_json, identity
from holdfast.plan.layout import Layout, TrialGroup
from holdfast.plan.lazy import Lazy
from holdfast.plan.select import EVERYTHING, Select, Shard, TaskFilter, chosen, positions

EVERY_RULE = "*"


class CellKey(NamedTuple):
    """Names a cell; `params` is an index into the spec's."""

    invariant: str
    scenario: str
    params: int


class Plan:
    """What a run will do, in an order that never changes: scenario, rule, prompt, params, replica."""

    def __init__(self, spec: Spec, select: Select = EVERYTHING, *, sequential: bool = False) -> None:
        """`sequential`: replicas of a prompt stop once they have decided; the spec has the most there may be."""
        self.spec = spec
        self.sequential = sequential
        self.scenarios, self.invariants = _chosen(spec, select)
        self.whens: frozenset[When] = frozenset(rule.when for rule in self.invariants)
        self._rows = {s.name: i for i, s in enumerate(self.scenarios)}
        self._columns = {r.id: i for i, r in enumerate(self.invariants)}
        self.selective = any(rule.selective for rule in self.invariants)
        """Whether trials of one scenario are judged by different rules."""
        self._tasks = {r.id: _tasks(spec, r) for r in self.invariants}
        self._params: dict[bytes, int] = {canonical(p): i for i, p in reversed(list(enumerate(spec.params)))}
        self._numbers = sorted(self._params.values())
        own = frozenset(spec.cell_rules)
        self._alone = {r.id: (r,) for r in self.invariants if r.probes or r.id in own}
        self._shared = {s.name: self._sharing(s) for s in self.scenarios}
        self._layout = Layout(spec, self._laid(), self._numbers)
        kept = self._kept(select)
        self._partial = self._counted(kept) if select.narrows else None
        everything = kept == range(len(self._layout))
        self.trials: Sequence[Trial] = Lazy(self._layout.trial, kept, self._layout.walk if everything else None)
        self.positions = self._cells()
        """Where the plan's cells lie in the grid of all."""
        self.cells: Sequence[CellKey] = Lazy(self.key_at, self.positions)
        self._controls = {at: self._control(*at) for at in dict.fromkeys(self._compared())}
        self.controls: tuple[Trial, ...] = tuple(self._controls.values())
        self.preflight: Trial | None = self._first(kept)

    # -- what later stages ask ------------------------------------------------------------------
    def rules(self, trial: Trial) -> tuple[Invariant, ...]:
        """The rules that the trial is judged by; none for a control."""
        if trial.kind != "contract":
            return ()
        return self._served(trial.scenario, trial.invariant, trial.task)

    def tasks(self, invariant: str) -> tuple[Task, ...]:
        """What is asked for a rule: its probes, else what the spec asks."""
        return self._tasks[invariant]

    def params_index(self, params: Mapping[str, Any]) -> int:
        """Which of the spec's params these are."""
        return self._numbers[0] if len(self._numbers) == 1 else self._params[canonical(params)]

    def position(self, invariant: str, scenario: str, params: int = 0) -> int:
        """Where the cell lies in the grid of all cells; no two lie in one place."""
        row = self._rows[scenario] * len(self.invariants) + self._columns[invariant]
        return row * len(self.spec.params) + params

    def key_at(self, position: int) -> CellKey:
        """The cell at a position of the grid."""
        row, params = divmod(position, len(self.spec.params))
        scenario, invariant = divmod(row, len(self.invariants))
        return CellKey(self.invariants[invariant].id, self.scenarios[scenario].name, params)

    def applies(self, key: CellKey) -> bool:
        """Whether the scenario meets the rule's `when`; if not, the cell is n/a."""
        return applies(self.invariants[self._columns[key.invariant]].when, self.scenarios[self._rows[key.scenario]])

    def asked(self, key: CellKey) -> tuple[int, ...]:
        """How many verdicts the cell expects for each of its rule's tasks."""
        tasks = self._tasks[key.invariant]
        if self._partial is not None:
            return tuple(self._partial[key, task] for task in tasks)
        if not self.selective:
            return (self.spec.replicas if self.applies(key) else 0,) * len(tasks)
        return tuple(self.spec.replicas if self._asks_in(key, task) else 0 for task in tasks)

    def _asks_in(self, key: CellKey, task: Task) -> bool:
        return self.applies(key) and task.asked_in(key.scenario)

    def asks(self, scenario: str, params: Mapping[str, Any], task: Task) -> bool:
        """Whether a trial of the plan asks the task there, for whatever rule."""
        number = self._params.get(canonical(params))
        if number is None or scenario not in self._rows:
            return False
        asking = (CellKey(rule, scenario, number) for rule, tasks in self._tasks.items() if task in tasks)
        return any(self.asked(key)[self._tasks[key.invariant].index(task)] for key in asking)

    def expected(self, key: CellKey) -> int:
        """How many verdicts the cell expects in all."""
        return sum(self.asked(key))

    @property
    def whole(self) -> bool:
        """Whether every prompt and replica of its cells is in it; not so where single trials were selected."""
        return self._partial is None

    @property
    def decides_cases(self) -> bool:
        """Whether every rule of its cases is in it; not so where single rules were selected."""
        left = [rule for rule in case_rules(self.spec) if rule.id not in self._columns]
        return not any(applies(rule.when, scenario) for rule in left for scenario in self.scenarios)

    def control_for(self, trial: Trial) -> Trial | None:
        """The calm trial of the same task and params, where it is compared with one."""
        return self._controls.get((trial.task.control, self.params_index(trial.params)))

    # -- how it is made -------------------------------------------------------------------------
    def _sharing(self, scenario: Scenario) -> tuple[Invariant, ...]:
        """The rules that share the scenario's trials: those without trials of their own."""
        return tuple(r for r in self.invariants if r.id not in self._alone and applies(r.when, scenario))

    def _served(self, scenario: str, name: str, task: Task) -> tuple[Invariant, ...]:
        served = self._shared.get(scenario, ()) if name == EVERY_RULE else self._alone.get(name, ())
        return tuple(rule for rule in served if rule.concerns(task)) if self.selective else served

    def _laid(self) -> Iterator[TrialGroup]:
        """Every group of trials in order; the shared ones stand where the first rule that shares them stands."""
        for scenario in self.scenarios:
            shared = self._shared[scenario.name]
            for rule in self.invariants:
                if shared and rule is shared[0]:
                    yield TrialGroup(scenario, EVERY_RULE, self._shared_tasks(shared, scenario))
                elif rule.id in self._alone and applies(rule.when, scenario):
                    yield TrialGroup(scenario, rule.id, self._tasks[rule.id])

    def _shared_tasks(self, rules: Sequence[Invariant], scenario: Scenario) -> tuple[Task, ...]:
        """What is asked for rules that share their trials: all that one of them judges in the scenario."""
        if not self.selective:
            return self._tasks[rules[0].id]
        asked = (task for task in _asked(self.spec) if task.asked_in(scenario.name))
        return tuple(task for task in asked if any(rule.concerns(task) for rule in rules))

    def _kept(self, select: Select) -> Sequence[int]:
        everything = range(len(self._layout))
        if not everything and select != EVERYTHING:
            raise UsageError("nothing is left to run", hint=_left_out(self.spec, select))
        kept: Sequence[int] = everything
        if select.trials:
            kept = positions(select.trials, (self._layout.trial(i).id for i in everything))
        if select.filters:
            kept = self._filtered(kept, TaskFilter(select))
            if not kept:
                raise UsageError("nothing is left to run", hint=_left_out(self.spec, select))
        return kept if select.shard is None else self._share(kept, select.shard)

    def _share(self, kept: Sequence[int], shard: Shard) -> list[int]:
        """Every so manieth question: scenarios and rules spread evenly, the replicas of a question stay together.

        So a cell that a shard fails is failed, whatever the others see.
        """
        share, last = [], -1
        group = -1
        for at in kept:
            if at // self.spec.replicas != last:
                group, last = group + 1, at // self.spec.replicas
            if group % shard.of == shard.number - 1:
                share.append(at)
        return share

    def _filtered(self, kept: Sequence[int], wanted: TaskFilter) -> list[int]:
        """Of these trials, those that ask what is wanted for a rule that they serve."""
        return [
            at
            for at, spot in zip(kept, map(self._layout.spot, kept), strict=True)
            if any(
                wanted.keeps(rule.id, spot.scenario, spot.task, self.spec.params[spot.params])
                for rule in self._served(spot.scenario, spot.invariant, spot.task)
            )
        ]

    def _counted(self, kept: Iterable[int]) -> Counter[tuple[CellKey, Task]]:
        counts: Counter[tuple[CellKey, Task]] = Counter()
        for spot in map(self._layout.spot, kept):
            for rule in self._served(spot.scenario, spot.invariant, spot.task):
                counts[CellKey(rule.id, spot.scenario, spot.params), spot.task] += 1
        return counts

    def _cells(self) -> Sequence[int]:
        if self._partial is not None:
            return sorted({self.position(*key) for key, _ in self._partial})
        width = len(self.spec.params)
        whole = range(len(self.scenarios) * len(self.invariants) * width)
        if len(self._numbers) == width:
            return whole
        return array("L", (i for i in whole if i % width in self._numbers))

    def _compared(self) -> Iterator[tuple[Task, int]]:
        """Task and params of every control: what a rule that compares with calm asks, and each plain request.

        Whether a refusal of a mutated request proves anything depends on the answer to the plain one.
        """
        for rule in self.invariants:
            compares = traits_of(rule).needs_control
            for task in self._tasks[rule.id]:
                if compares or task.changes_request:
                    yield from ((task.control, number) for number in self._numbers if self._asks(rule, task, number))

    def _asks(self, rule: Invariant, task: Task, params: int) -> bool:
        keys = (CellKey(rule.id, s.name, params) for s in self.scenarios)
        if self._partial is None:
            return any(map(self.applies, keys))
        return any((key, task) in self._partial for key in keys)

    def _first(self, kept: Sequence[int]) -> Trial | None:
        if not kept:
            return None
        spot = self._layout.spot(kept[0])
        task = spot.task.plain
        return self._controls.get((task, spot.params)) or self._control(task, spot.params)

    def _control(self, task: Task, number: int) -> Trial:
        return control_trial(self.spec, task, self.spec.params[number])


def control_trial(spec: Spec, task: Task, params: dict[str, Any]) -> Trial:
    """The trial that asks the task in calm, for no rule."""
    agent = agent_json(spec.agent)
    id = digest(identity("control", Scenario(CONTROL), task, params, 0, EVERY_RULE, agent, spec.seed))
    return Trial(id, "control", CONTROL, task, 0, params, EVERY_RULE, spec.seed)


def plan(spec: Spec, select: Select = EVERYTHING, *, sequential: bool = False) -> Plan:
    """The plan of a spec, or of the part of it that is selected."""
    return Plan(spec, select, sequential=sequential)


def case_rules(spec: Spec) -> tuple[Invariant, ...]:
    """The rules that share trials, and whose verdicts on one make its composite."""
    own = frozenset(spec.cell_rules)
    return tuple(rule for rule in spec.invariants if not rule.probes and rule.id not in own)


def _chosen(spec: Spec, select: Select) -> tuple[tuple[Scenario, ...], tuple[Invariant, ...]]:
    scenarios = set(chosen(select.scenarios, [s.name for s in spec.scenarios], "scenario"))
    invariants = set(chosen(select.invariants, [r.id for r in spec.invariants], "rule"))
    kept = [s for s in spec.scenarios if s.name in scenarios]
    rules = [r for r in spec.invariants if r.id in invariants]
    if select.filters:
        wanted = TaskFilter(select)
        pairs = [(s, r) for s in kept for r in rules if applies(r.when, s) and _wanted(wanted, spec, r, s)]
        kept = [s for s in kept if any(s is scenario for scenario, _ in pairs)]
        rules = [r for r in rules if any(r is rule for _, rule in pairs)]
    return tuple(kept), tuple(rules)


def _wanted(wanted: TaskFilter, spec: Spec, rule: Invariant, scenario: Scenario) -> bool:
    return any(wanted.keeps(rule.id, scenario.name, task, at) for task in _tasks(spec, rule) for at in spec.params)


def _left_out(spec: Spec, select: Select) -> str:
    """Which options left nothing."""
    besides = replace(select, failed=())
    if select.failed and besides == EVERYTHING:
        return "what failed in the last run is not in this file any more"
    if select.failed and _leaves_any(spec, besides):
        fits = f"what fits -k {select.keywords!r}" if select.keywords else "what is selected"
        return f"{fits} did not fail when it was last asked: leave out --lf to run it"
    if select.keywords:
        return f"no scenario, rule, prompt or type of mutation fits -k {select.keywords!r}"
    return "no selected rule's `when` is met by a selected scenario"


def _leaves_any(spec: Spec, select: Select) -> bool:
    scenarios, rules = _chosen(spec, select)
    return any(applies(rule.when, scenario) for rule in rules for scenario in scenarios)


def _tasks(spec: Spec, rule: Invariant) -> tuple[Task, ...]:
    """Each thing asked once: a prompt written twice would be the same trial twice."""
    if rule.probes:
        return tuple(dict.fromkeys(Task((probe,), "probe") for probe in rule.probes))
    return tuple(task for task in _asked(spec) if rule.concerns(task)) if rule.selective else _asked(spec)


def _asked(spec: Spec) -> tuple[Task, ...]:
    return tuple(dict.fromkeys(spec.tasks))
