"""A plan made of the stored trials, whichever rule they were made for."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from holdfast.model.codec import encode_canonical
from holdfast.model.spec import Invariant, Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.plan import CellKey, Plan, Select
from holdfast.plan.serving import EVERY_RULE

_GROUPS_KEPT = 1024
"""Groups whose rules are cached: stored trials come nearly in plan order."""


class StoredPlan(Plan):
    """Judges a rule on its own trials and those that serve every rule; without any, on all trials of its tasks.

    Trials are only counted, by group: one scenario, one set of params and one task.
    """

    whole = False

    def __init__(
        self, spec: Spec, select: Select, stored: Iterable[Trial], replicas: int, *, sequential: bool = False
    ) -> None:
        super().__init__(spec, select, sequential=sequential)
        self._replicas = replicas
        """Planned replicas: those that never ran are missing, not left out."""
        self._every = tuple(dict.fromkeys(task for rule in self.invariants for task in self.get_tasks(rule.id)))
        self._task_numbers = {task: number for number, task in enumerate(self._every)}
        self._places = {
            rule.id: {task: n for n, task in enumerate(self.get_tasks(rule.id))} for rule in self.invariants
        }
        self._widest = max(map(len, self._places.values()), default=0)
        # Trials are counted in flat arrays, indexed by scenario, params and task. A dict by these keys would be many
        # times larger for a run of a million trials.
        groups = len(self.scenarios) * len(spec.params) * len(self._every)
        self._alike = array("L", [0]) * groups
        self._serving_all = array("L", [0]) * groups
        self._own = array("L", [0]) * (len(self.scenarios) * len(self.invariants) * len(spec.params) * self._widest)
        self._wanted = None if super().whole else frozenset(self.positions)
        self.made_for: set[str] = set()
        """The rules that stored trials were made for."""
        self._rules_of = lru_cache(_GROUPS_KEPT)(self._find_rules)
        self._orphans_of = lru_cache(_GROUPS_KEPT)(self._find_orphans)
        for trial in stored:
            if trial.kind == "contract":
                self._count_trial(trial)

    def get_rules(self, trial: Trial) -> tuple[Invariant, ...]:
        """Return the rules of the trial's scenario that ask its task, however the run arranged them."""
        group = self._find_group(trial.scenario.name, trial.params, trial.task)
        return () if group is None else tuple(self._rules_of(group).values())

    def get_judging_rules(self, trial: Trial) -> tuple[Invariant, ...]:
        """Return the rules that judge this trial."""
        group = self._find_group(trial.scenario.name, trial.params, trial.task)
        if group is None:
            return ()
        asking = self._rules_of(group)
        if trial.invariant == EVERY_RULE:
            return tuple(asking.values())
        own = asking.get(trial.invariant)
        return self._orphans_of(group) if own is None else (own, *self._orphans_of(group))

    def count_trials(self, key: CellKey, task: Task) -> int:
        """Return the number of stored trials that judge a rule on one of its tasks."""
        group = self._find_group(key.scenario, self.spec.params[key.params], task)
        assert group is not None, "the task is one of the rule's"
        return self._count_owned(key.invariant, group) or self._alike[group]

    def count_by_task(self, key: CellKey) -> tuple[int, ...]:
        tasks = self.get_tasks(key.invariant)
        if not self.is_applicable(key):
            return (0,) * len(tasks)
        wanted = (self._replicas,) * len(tasks) if super().whole else super().count_by_task(key)
        return tuple(map(max, wanted, (self.count_trials(key, task) for task in tasks)))

    def _count_trial(self, trial: Trial) -> None:
        self.made_for.add(trial.invariant)
        group = self._find_group(trial.scenario.name, trial.params, trial.task)
        if group is None:
            return
        self._alike[group] += 1
        if trial.invariant == EVERY_RULE:
            self._serving_all[group] += 1
        elif trial.task in self._places.get(trial.invariant, ()):
            self._own[self._compute_position(trial.invariant, group)] += 1

    def _find_group(self, scenario: str, params: Mapping[str, Any], task: Task) -> int | None:
        """Return the number of a group; None if this plan does not use it."""
        row, number = self._rows.get(scenario), self._params.get(encode_canonical(params))
        task_number = self._task_numbers.get(task)
        if row is None or number is None or task_number is None:
            return None
        return (row * len(self.spec.params) + number) * len(self._every) + task_number

    def _split_group(self, group: int) -> tuple[str, int, Task]:
        """Return the scenario, the params and the task of a group."""
        rest, task = divmod(group, len(self._every))
        row, params = divmod(rest, len(self.spec.params))
        return self.scenarios[row].name, params, self._every[task]

    def _find_rules(self, group: int) -> dict[str, Invariant]:
        """Return the rules that ask the group's task in its scenario, by id."""
        scenario, params, task = self._split_group(group)
        asking = {}
        for rule in self.invariants:
            key = CellKey(rule.id, scenario, params)
            selected = self._wanted is None or self.get_position(*key) in self._wanted
            if selected and task in self._places[rule.id] and self.is_applicable(key):
                asking[rule.id] = rule
        return asking

    def _find_orphans(self, group: int) -> tuple[Invariant, ...]:
        """Return the rules of the group that no trial was made for."""
        return tuple(rule for id, rule in self._rules_of(group).items() if not self._count_owned(id, group))

    def _count_owned(self, rule: str, group: int) -> int:
        """Count the trials of the group that were made for the rule, or for every rule."""
        return self._own[self._compute_position(rule, group)] + self._serving_all[group]

    def _compute_position(self, rule: str, group: int) -> int:
        scenario, params, task = self._split_group(group)
        return self.get_position(rule, scenario, params) * self._widest + self._places[rule][task]
