"""Decides which rules share trials and which have their own, and the tasks of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from msgspec.structs import replace

from holdfast.errors import UsageError
from holdfast.model.scenario import Scenario, is_applicable
from holdfast.model.spec import Invariant, Spec
from holdfast.model.task import Task
from holdfast.plan.layout import Layout, TrialGroup
from holdfast.plan.select import EVERYTHING, Select, Shard, TaskFilter, find_positions, select_names


def select_places(spec: Spec, select: Select, layout: Layout, serving: Serving) -> Sequence[int]:
    """Return the positions of the selected trials; raise UsageError if nothing is left."""
    everything = range(len(layout))
    if not everything and select != EVERYTHING:
        raise UsageError("nothing is left to run", code="nothing-selected", hint=_explain_nothing_left(spec, select))
    places: Sequence[int] = everything
    if select.trials:
        places = find_positions(select.trials, (layout.build_trial(place).id for place in everything))
    if select.filters:
        wanted = TaskFilter(select)
        places = [place for place in places if _is_selected(wanted, spec, layout, serving, place)]
        if not places:
            raise UsageError(
                "nothing is left to run", code="nothing-selected", hint=_explain_nothing_left(spec, select)
            )
    if select.shard is None or spec.part == "hunt":  # every shard of a hunt starts from the same calm trials
        return places
    return _select_shard(places, select.shard, spec.replicas)


def _is_selected(wanted: TaskFilter, spec: Spec, layout: Layout, serving: Serving, place: int) -> bool:
    """Return whether the trial at the position asks a wanted task for a rule that it serves."""
    spot = layout.find_spot(place)
    rules = serving.get_rules(spot.scenario, spot.invariant, spot.task)
    return any(wanted.is_selected(rule.id, spot.scenario.name, spot.task, spec.params[spot.params]) for rule in rules)


def _select_shard(places: Sequence[int], shard: Shard, replicas: int) -> list[int]:
    """Return every n-th question: scenarios and rules are spread evenly, and the replicas of a question stay together.

    So a cell that fails in one shard has failed, whatever the others observe.
    """
    # Trials of one question are neighbours in the layout, one per replica: dividing a position by the replicas gives
    # the question. Filters may have removed some, so questions are counted as they come.
    share, last = [], -1
    group = -1
    for place in places:
        if place // replicas != last:
            group, last = group + 1, place // replicas
        if group % shard.of == shard.number - 1:
            share.append(place)
    return share


def select_parts(spec: Spec, select: Select) -> tuple[tuple[Scenario, ...], tuple[Invariant, ...]]:
    """Return the selected scenarios and rules."""
    scenarios = set(select_names(select.scenarios, [s.name for s in spec.scenarios], "scenario"))
    invariants = set(select_names(select.invariants, [r.id for r in spec.invariants], "rule"))
    selected = [s for s in spec.scenarios if s.name in scenarios]
    rules = [r for r in spec.invariants if r.id in invariants]
    if select.filters:
        wanted = TaskFilter(select)
        pairs = [(s, r) for s in selected for r in rules if is_applicable(r.when, s) and _is_wanted(wanted, spec, r, s)]
        selected = [s for s in selected if any(s is scenario for scenario, _ in pairs)]
        rules = [r for r in rules if any(r is rule for _, rule in pairs)]
    return tuple(selected), tuple(rules)


def _is_wanted(wanted: TaskFilter, spec: Spec, rule: Invariant, scenario: Scenario) -> bool:
    return any(
        wanted.is_selected(rule.id, scenario.name, task, at) for task in get_tasks(spec, rule) for at in spec.params
    )


def _explain_nothing_left(spec: Spec, select: Select) -> str:
    """Return the options that left nothing."""
    besides = replace(select, failed=())
    if select.failed and besides == EVERYTHING:
        return "the failed trials of the last run are no longer in this file"
    if select.failed and any(is_applicable(r.when, s) for s, r in product(*select_parts(spec, besides))):
        selection = f"what matches -k {select.keywords!r}" if select.keywords else "what is selected"
        return f"{selection} did not fail in its last run: leave out --lf to run it"
    if select.keywords:
        return f"no scenario, rule, prompt or type of mutation matches -k {select.keywords!r}"
    return "no selected rule's `when` is met by a selected scenario"


EVERY_RULE = "*"


class Serving:
    """The rules that each trial of a plan serves."""

    def __init__(self, spec: Spec, scenarios: Sequence[Scenario], invariants: Sequence[Invariant]) -> None:
        self._spec = spec
        self._scenarios = scenarios
        self._invariants = invariants
        self.selective = any(rule.is_selective for rule in invariants)
        """Whether different rules judge trials of one scenario."""
        self.tasks = {rule.id: get_tasks(spec, rule) for rule in invariants}
        # Every rule either has trials of its own or shares those of its scenario. Probes are always alone, because no
        # other rule is about what they ask.
        cell_rules = frozenset(spec.cell_rules)
        self._alone = {rule.id: (rule,) for rule in invariants if rule.probes or rule.id in cell_rules}
        self._shared = {scenario.name: self._find_sharing_rules(scenario) for scenario in scenarios}

    def get_rules(self, scenario: Scenario, name: str, task: Task) -> tuple[Invariant, ...]:
        """Return the rules that trials of the task serve there; `name` is the trial's rule, or EVERY_RULE."""
        served = self._get_shared_rules(scenario) if name == EVERY_RULE else self._alone.get(name, ())
        return tuple(rule for rule in served if rule.is_judging(task)) if self.selective else served

    def iter_groups(self) -> Iterator[TrialGroup]:
        """Yield every group of trials in order; a shared group is at the position of its first rule."""
        for scenario in self._scenarios:
            shared = self._shared[scenario.name]
            for rule in self._invariants:
                if shared and rule is shared[0]:
                    yield TrialGroup(scenario, EVERY_RULE, self._get_shared_tasks(shared, scenario))
                elif rule.id in self._alone and is_applicable(rule.when, scenario):
                    yield TrialGroup(scenario, rule.id, self.tasks[rule.id])

    def _get_shared_rules(self, scenario: Scenario) -> tuple[Invariant, ...]:
        # A hunt invents scenarios that no plan knows. They are judged by all rules that share trials, but a scenario of
        # the spec that the selection leaves out is judged by none.
        served = self._shared.get(scenario.name)
        if served is None:  # a planner invented it, or the selection leaves it out
            left_out = any(scenario.name == known_scenario.name for known_scenario in self._spec.scenarios)
            served = self._shared[scenario.name] = () if left_out else self._find_sharing_rules(scenario)
        return served

    def _find_sharing_rules(self, scenario: Scenario) -> tuple[Invariant, ...]:
        """Return the rules that share the scenario's trials: those without their own."""
        return tuple(r for r in self._invariants if r.id not in self._alone and is_applicable(r.when, scenario))

    def _get_shared_tasks(self, rules: Sequence[Invariant], scenario: Scenario) -> tuple[Task, ...]:
        """Return the tasks of rules that share their trials: all that one of them judges in the scenario."""
        if not self.selective:
            return self.tasks[rules[0].id]
        tasks = (task for task in _list_tasks(self._spec) if task.is_asked_in(scenario.name))
        return tuple(task for task in tasks if any(rule.is_judging(task) for rule in rules))


def get_tasks(spec: Spec, rule: Invariant) -> tuple[Task, ...]:
    """Return each task once: a prompt written twice would be the same trial twice."""
    if rule.probes:
        return tuple(dict.fromkeys(Task((probe,), "probe") for probe in rule.probes))
    return (
        tuple(task for task in _list_tasks(spec) if rule.is_judging(task)) if rule.is_selective else _list_tasks(spec)
    )


def _list_tasks(spec: Spec) -> tuple[Task, ...]:
    return tuple(dict.fromkeys(spec.tasks))
