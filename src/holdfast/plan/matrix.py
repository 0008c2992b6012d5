"""The plan of a run: rules x scenarios x prompts x params x replicas, created on demand."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.model.codec import canonical, digest
from holdfast.model.spec import Invariant, Spec, When
from holdfast.model.task import Task
from holdfast.model.trial import CONTROL, Trial
from holdfast.model.when import applies
from holdfast.plan.checks import traits_of
from holdfast.plan.ids import agent_json, identity
from holdfast.plan.layout import Layout, Lazy, Spot
from holdfast.plan.select import EVERYTHING, Select
from holdfast.plan.serving import EVERY_RULE, Serving, chosen_parts, kept_places


class CellKey(NamedTuple):
    """Names a cell; `params` is an index into the spec's."""

    invariant: str
    scenario: str
    params: int


class Plan:
    """What a run will do, in a fixed order: scenario, rule, prompt, params, replica."""

    def __init__(self, spec: Spec, select: Select = EVERYTHING, *, sequential: bool = False) -> None:
        """`sequential`: replicas of a prompt stop once they are decided; the spec has their maximum."""
        self.spec = spec
        self.sequential = sequential
        self.scenarios, self.invariants = chosen_parts(spec, select)
        self.whens: frozenset[When] = frozenset(rule.when for rule in self.invariants)
        self._rows = {s.name: i for i, s in enumerate(self.scenarios)}
        self._columns = {r.id: i for i, r in enumerate(self.invariants)}
        self._serving = Serving(spec, self.scenarios, self.invariants)
        self.selective = self._serving.selective
        self._tasks = self._serving.tasks
        self._params: dict[bytes, int] = {canonical(p): i for i, p in reversed(list(enumerate(spec.params)))}
        self._numbers = sorted(self._params.values())
        layout = Layout(spec, self._serving.groups(), self._numbers)
        places = kept_places(spec, select, layout, self._serving)
        self._partial = _counted(map(layout.spot, places), self._serving) if select.narrows else None
        everything = places == range(len(layout))
        self.trials: Sequence[Trial] = Lazy(layout.trial, places, layout.walk if everything else None)
        self.positions = self._cells()
        """The positions of the plan's cells in the complete grid."""
        self.cells: Sequence[CellKey] = Lazy(self.key_at, self.positions)
        self._controls = {at: self._control(*at) for at in dict.fromkeys(self._compared())}
        self.controls: tuple[Trial, ...] = tuple(self._controls.values())
        self.preflight = self._first(layout.spot(places[0])) if places else None

    def rules(self, trial: Trial) -> tuple[Invariant, ...]:
        """The rules that judge the trial; none for a control."""
        if trial.kind != "contract":
            return ()
        return self._serving.rules(trial.scenario, trial.invariant, trial.task)

    def tasks(self, invariant: str) -> tuple[Task, ...]:
        """The tasks of a rule: its probes, otherwise the spec's."""
        return self._tasks[invariant]

    def params_index(self, params: Mapping[str, Any]) -> int:
        """The index of these params in the spec."""
        return self._numbers[0] if len(self._numbers) == 1 else self._params[canonical(params)]

    def position(self, invariant: str, scenario: str, params: int = 0) -> int:
        """The cell's position in the complete grid; each cell has its own."""
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
        applies = self.applies(key)
        return tuple(self.spec.replicas if applies and task.asked_in(key.scenario) else 0 for task in tasks)

    def asks(self, scenario: str, params: Mapping[str, Any], task: Task) -> bool:
        """Whether a trial of the plan asks the task there, for any rule."""
        number = self._params.get(canonical(params))
        if number is None or scenario not in self._rows:
            return False
        asking = (CellKey(rule, scenario, number) for rule, tasks in self._tasks.items() if task in tasks)
        return any(self.asked(key)[self._tasks[key.invariant].index(task)] for key in asking)

    def expected(self, key: CellKey) -> int:
        """How many verdicts the cell expects in total."""
        return sum(self.asked(key))

    @property
    def whole(self) -> bool:
        """Whether it contains every prompt and replica of its cells; not if single trials were selected."""
        return self._partial is None

    @property
    def decides_cases(self) -> bool:
        """Whether it contains every rule of its cases; not if single rules were selected."""
        left = [rule for rule in case_rules(self.spec) if rule.id not in self._columns]
        return not any(applies(rule.when, scenario) for rule in left for scenario in self.scenarios)

    def control_for(self, trial: Trial) -> Trial | None:
        """The calm trial of the same task and params, if the trial is compared with one."""
        return self._controls.get((trial.task.control, self.params_index(trial.params)))

    def _cells(self) -> Sequence[int]:
        if self._partial is not None:
            return sorted({self.position(*key) for key, _ in self._partial})
        width = len(self.spec.params)
        whole = range(len(self.scenarios) * len(self.invariants) * width)
        if len(self._numbers) == width:
            return whole
        return array("L", (i for i in whole if i % width in self._numbers))

    def _compared(self) -> Iterator[tuple[Task, int]]:
        """Task and params of every control: the tasks of rules that compare with calm, and each plain request.

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

    def _first(self, spot: Spot) -> Trial:
        """The calm trial of the plan's first question: the preflight of a run."""
        task = spot.task.plain
        return self._controls.get((task, spot.params)) or self._control(task, spot.params)

    def _control(self, task: Task, number: int) -> Trial:
        return control_trial(self.spec, task, self.spec.params[number])


def _counted(spots: Iterable[Spot], serving: Serving) -> Counter[tuple[CellKey, Task]]:
    """How many trials each cell has for each task."""
    counts: Counter[tuple[CellKey, Task]] = Counter()
    for spot in spots:
        for rule in serving.rules(spot.scenario, spot.invariant, spot.task):
            counts[CellKey(rule.id, spot.scenario.name, spot.params), spot.task] += 1
    return counts


def control_trial(spec: Spec, task: Task, params: dict[str, Any]) -> Trial:
    """The trial that asks the task in calm, for no rule."""
    agent = agent_json(spec.agent)
    id = digest(identity("control", CONTROL, task, params, 0, EVERY_RULE, agent, spec.seed))
    return Trial(id, "control", CONTROL, task, 0, params, EVERY_RULE, spec.seed)


def plan(spec: Spec, select: Select = EVERYTHING, *, sequential: bool = False) -> Plan:
    """The plan of a spec, or of a selected part."""
    return Plan(spec, select, sequential=sequential)


def case_rules(spec: Spec) -> tuple[Invariant, ...]:
    """The rules that share trials, and whose verdicts on one make its composite."""
    own = frozenset(spec.cell_rules)
    return tuple(rule for rule in spec.invariants if not rule.probes and rule.id not in own)
