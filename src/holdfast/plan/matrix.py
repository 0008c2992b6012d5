"""The plan of a run: rules x scenarios x prompts x params x replicas, created on demand."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.model.codec import digest, encode_canonical
from holdfast.model.judged import JudgingProgress
from holdfast.model.scenario import When, is_applicable
from holdfast.model.spec import Invariant, Spec
from holdfast.model.task import Task
from holdfast.model.trial import CONTROL, Trial
from holdfast.plan.checks import get_traits
from holdfast.plan.layout import Layout, LazySequence, TrialSpot, encode_agent, encode_identity
from holdfast.plan.select import EVERYTHING, Select
from holdfast.plan.serving import EVERY_RULE, Serving, select_parts, select_places


class CellKey(NamedTuple):
    """Names a cell; `params` is an index into the spec's `params`."""

    invariant: str
    scenario: str
    params: int


class Plan:
    """The trials of a run, in a fixed order: scenario, rule, prompt, params, replica."""

    def __init__(self, spec: Spec, select: Select = EVERYTHING, *, sequential: bool = False) -> None:
        """`sequential`: replicas of a prompt stop once they are decided; the spec has their maximum."""
        self.spec = spec
        self.sequential = sequential
        self.scenarios, self.invariants = select_parts(spec, select)
        self.whens: frozenset[When] = frozenset(rule.when for rule in self.invariants)
        self._rows = {s.name: i for i, s in enumerate(self.scenarios)}
        self._columns = {r.id: i for i, r in enumerate(self.invariants)}
        self._serving = Serving(spec, self.scenarios, self.invariants)
        self.selective = self._serving.selective
        self._tasks = self._serving.tasks
        self._params: dict[bytes, int] = {encode_canonical(p): i for i, p in reversed(list(enumerate(spec.params)))}
        self._numbers = sorted(self._params.values())
        layout = Layout(spec, self._serving.iter_groups(), self._numbers)
        places = select_places(spec, select, layout, self._serving)
        self._partial = _count_trials(map(layout.find_spot, places), self._serving) if select.narrows else None
        self.trials: Sequence[Trial] = LazySequence(layout.build_trial, places)
        self.positions = self._list_positions()
        """The positions of the plan's cells in the complete grid."""
        self.cells: Sequence[CellKey] = LazySequence(self.get_key, self.positions)
        self._controls = {at: self._build_control(*at) for at in dict.fromkeys(self._iter_control_keys())}
        self.controls: tuple[Trial, ...] = tuple(self._controls.values())
        self.preflight = self._get_preflight(layout.find_spot(places[0])) if places else None

    def get_rules(self, trial: Trial) -> tuple[Invariant, ...]:
        """Return the rules that judge the trial; none for a control."""
        if trial.kind != "contract":
            return ()
        return self._serving.get_rules(trial.scenario, trial.invariant, trial.task)

    def get_tasks(self, invariant: str) -> tuple[Task, ...]:
        """Return the tasks of a rule: its probes, otherwise the spec's."""
        return self._tasks[invariant]

    def get_params_index(self, params: Mapping[str, Any]) -> int:
        """Return the index of these params in the spec."""
        return self._numbers[0] if len(self._numbers) == 1 else self._params[encode_canonical(params)]

    def get_position(self, invariant: str, scenario: str, params: int = 0) -> int:
        """Return the cell's position in the complete grid; each cell has its own."""
        row = self._rows[scenario] * len(self.invariants) + self._columns[invariant]
        return row * len(self.spec.params) + params

    def get_key(self, position: int) -> CellKey:
        """Return the cell at a position of the grid."""
        row, params = divmod(position, len(self.spec.params))
        scenario, invariant = divmod(row, len(self.invariants))
        return CellKey(self.invariants[invariant].id, self.scenarios[scenario].name, params)

    def is_applicable(self, key: CellKey) -> bool:
        """Return whether the scenario meets the rule's `when`; if not, the cell is n/a."""
        return is_applicable(
            self.invariants[self._columns[key.invariant]].when, self.scenarios[self._rows[key.scenario]]
        )

    def count_by_task(self, key: CellKey) -> tuple[int, ...]:
        """Return how many verdicts the cell expects for each of its rule's tasks."""
        tasks = self._tasks[key.invariant]
        if self._partial is not None:
            return tuple(self._partial[key, task] for task in tasks)
        if not self.selective:
            return (self.spec.replicas if self.is_applicable(key) else 0,) * len(tasks)
        applies = self.is_applicable(key)
        return tuple(self.spec.replicas if applies and task.is_asked_in(key.scenario) else 0 for task in tasks)

    def has_trial(self, scenario: str, params: Mapping[str, Any], task: Task) -> bool:
        """Return whether a trial of the plan asks the task there, for any rule."""
        number = self._params.get(encode_canonical(params))
        if number is None or scenario not in self._rows:
            return False
        asking = (CellKey(rule, scenario, number) for rule, tasks in self._tasks.items() if task in tasks)
        return any(self.count_by_task(key)[self._tasks[key.invariant].index(task)] for key in asking)

    def count_expected(self, key: CellKey) -> int:
        """Return how many verdicts the cell expects in total."""
        return sum(self.count_by_task(key))

    @property
    def whole(self) -> bool:
        """Whether it contains every prompt and replica of its cells; not if single trials were selected."""
        return self._partial is None

    @property
    def decides_cases(self) -> bool:
        """Whether it contains every rule of its cases; not if single rules were selected."""
        unselected = [rule for rule in select_case_rules(self.spec) if rule.id not in self._columns]
        return not any(is_applicable(rule.when, scenario) for rule in unselected for scenario in self.scenarios)

    def get_control(self, trial: Trial) -> Trial | None:
        """Return the calm trial of the same task and params, if the trial is compared with one."""
        return self._controls.get((trial.task.control, self.get_params_index(trial.params)))

    def _list_positions(self) -> Sequence[int]:
        if self._partial is not None:
            return sorted({self.get_position(*key) for key, _ in self._partial})
        width = len(self.spec.params)
        whole = range(len(self.scenarios) * len(self.invariants) * width)
        if len(self._numbers) == width:
            return whole
        return array("L", (i for i in whole if i % width in self._numbers))

    def _iter_control_keys(self) -> Iterator[tuple[Task, int]]:
        """Yield the task and params of every control: for rules that compare with calm, and for each plain request.

        Whether a refusal of a mutated request proves anything depends on the answer to the plain one.
        """
        for rule in self.invariants:
            compares = get_traits(rule).needs_control
            for task in self._tasks[rule.id]:
                if compares or task.changes_request:
                    yield from (
                        (task.control, number) for number in self._numbers if self._has_question(rule, task, number)
                    )

    def _has_question(self, rule: Invariant, task: Task, params: int) -> bool:
        keys = (CellKey(rule.id, s.name, params) for s in self.scenarios)
        if self._partial is None:
            return any(map(self.is_applicable, keys))
        return any((key, task) in self._partial for key in keys)

    def _get_preflight(self, spot: TrialSpot) -> Trial:
        """Return the calm trial of the plan's first question: the preflight of a run."""
        task = spot.task.plain
        return self._controls.get((task, spot.params)) or self._build_control(task, spot.params)

    def _build_control(self, task: Task, number: int) -> Trial:
        return build_control_trial(self.spec, task, self.spec.params[number])


def _count_trials(spots: Iterable[TrialSpot], serving: Serving) -> Counter[tuple[CellKey, Task]]:
    """Return how many trials each cell has for each task."""
    counts: Counter[tuple[CellKey, Task]] = Counter()
    for spot in spots:
        for rule in serving.get_rules(spot.scenario, spot.invariant, spot.task):
            counts[CellKey(rule.id, spot.scenario.name, spot.params), spot.task] += 1
    return counts


def build_control_trial(spec: Spec, task: Task, params: dict[str, Any]) -> Trial:
    """Return the trial that asks the task in calm, for no rule."""
    agent = encode_agent(spec.agent)
    id = digest(encode_identity("control", CONTROL, task, params, 0, EVERY_RULE, agent, spec.seed))
    return Trial(id, "control", CONTROL, task, 0, params, EVERY_RULE, spec.seed)


def build_plan(spec: Spec, select: Select = EVERYTHING, *, sequential: bool = False) -> Plan:
    """Return the plan of a spec, or of a selected part."""
    return Plan(spec, select, sequential=sequential)


def select_case_rules(spec: Spec) -> tuple[Invariant, ...]:
    """Return the rules that share trials, and whose verdicts on one make its composite."""
    cell_rules = frozenset(spec.cell_rules)
    return tuple(rule for rule in spec.invariants if not rule.probes and rule.id not in cell_rules)


class OncePlanner:
    """Returns every trial at the start, then none."""

    detailed = False

    def __init__(self, trials: Sequence[Trial]) -> None:
        self._trials = trials

    def next(self, judged: JudgingProgress) -> Sequence[Trial]:
        return () if judged.done else self._trials


class FailFastPlanner:
    """Returns `width` trials at a time until one has failed."""

    detailed = False

    def __init__(self, trials: Sequence[Trial], width: int) -> None:
        if width < 1:
            raise ValueError(f"width must be at least 1, not {width}")
        self._trials = trials
        self._width = width

    def next(self, judged: JudgingProgress) -> Sequence[Trial]:
        return () if judged.failed else self._trials[judged.done : judged.done + self._width]


class RoundsPlanner:
    """Returns one replica of every undecided prompt, then the next one.

    A complete round is judged before the next is made, so the trials depend neither on the order in which they end nor
    on how many run in parallel. `wants` says whether a trial would help to decide; `fail_fast` ends the run after the
    round in which it failed.
    """

    detailed = False

    def __init__(self, trials: Sequence[Trial], wants: Callable[[Trial], bool], *, fail_fast: bool = False) -> None:
        self._trials = trials
        self._wants = wants
        self._fail_fast = fail_fast
        self._rounds: list[array[int]] = []
        """By replica: the positions of its trials."""
        for place, trial in enumerate(trials):
            while len(self._rounds) <= trial.replica:
                self._rounds.append(array("L"))
            self._rounds[trial.replica].append(place)
        self._round = 0

    def next(self, judged: JudgingProgress) -> Sequence[Trial]:
        while self._round < len(self._rounds) and not (self._fail_fast and judged.failed):
            places = self._rounds[self._round]
            self._round += 1
            # Which trials are wanted is decided for the round as a whole, before any of them runs. Otherwise the set of
            # trials would depend on which of them ended first.
            wanted = array("L", (place for place in places if self._wants(self._trials[place])))
            if wanted:
                return LazySequence(self._trials.__getitem__, wanted)
        return ()
