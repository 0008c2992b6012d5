"""Which rules share trials, which have trials of their own, and what is asked for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.model.scenario import Scenario
from holdfast.model.spec import Invariant, Spec
from holdfast.model.task import Task
from holdfast.model.when import applies
from holdfast.plan.layout import TrialGroup

EVERY_RULE = "*"


class Serving:
    """The rules that each trial of a plan serves."""

    def __init__(self, spec: Spec, scenarios: Sequence[Scenario], invariants: Sequence[Invariant]) -> None:
        self._spec = spec
        self._scenarios = scenarios
        self._invariants = invariants
        self.selective = any(rule.selective for rule in invariants)
        """Whether trials of one scenario are judged by different rules."""
        self.tasks = {rule.id: tasks_of(spec, rule) for rule in invariants}
        own = frozenset(spec.cell_rules)
        self._alone = {rule.id: (rule,) for rule in invariants if rule.probes or rule.id in own}
        self._shared = {scenario.name: self._sharing(scenario) for scenario in scenarios}

    def rules(self, scenario: str, name: str, task: Task) -> tuple[Invariant, ...]:
        """The rules that trials of the task serve there; `name` is the trial's rule, or EVERY_RULE."""
        served = self._shared.get(scenario, ()) if name == EVERY_RULE else self._alone.get(name, ())
        return tuple(rule for rule in served if rule.concerns(task)) if self.selective else served

    def groups(self) -> Iterator[TrialGroup]:
        """Every group of trials in order; the shared ones stand where the first rule that shares them stands."""
        for scenario in self._scenarios:
            shared = self._shared[scenario.name]
            for rule in self._invariants:
                if shared and rule is shared[0]:
                    yield TrialGroup(scenario, EVERY_RULE, self._shared_tasks(shared, scenario))
                elif rule.id in self._alone and applies(rule.when, scenario):
                    yield TrialGroup(scenario, rule.id, self.tasks[rule.id])

    def _sharing(self, scenario: Scenario) -> tuple[Invariant, ...]:
        """The rules that share the scenario's trials: those without trials of their own."""
        return tuple(r for r in self._invariants if r.id not in self._alone and applies(r.when, scenario))

    def _shared_tasks(self, rules: Sequence[Invariant], scenario: Scenario) -> tuple[Task, ...]:
        """What is asked for rules that share their trials: all that one of them judges in the scenario."""
        if not self.selective:
            return self.tasks[rules[0].id]
        asked = (task for task in _asked(self._spec) if task.asked_in(scenario.name))
        return tuple(task for task in asked if any(rule.concerns(task) for rule in rules))


def tasks_of(spec: Spec, rule: Invariant) -> tuple[Task, ...]:
    """Each thing asked once: a prompt written twice would be the same trial twice."""
    if rule.probes:
        return tuple(dict.fromkeys(Task((probe,), "probe") for probe in rule.probes))
    return tuple(task for task in _asked(spec) if rule.concerns(task)) if rule.selective else _asked(spec)


def _asked(spec: Spec) -> tuple[Task, ...]:
    return tuple(dict.fromkeys(spec.tasks))
