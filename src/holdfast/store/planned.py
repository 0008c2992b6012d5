"""Whether a stored trial is one of a plan, told by its id."""

from __future__ import annotations

from functools import cached_property
from hashlib import blake2b

from holdfast.model.codec import canonical
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.plan import Plan, agent_json, ids


class Planned:
    """The trials of a plan. None of them is made for the question: an id is the digest of what decides a trial."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._scenarios = {scenario.name: scenario for scenario in plan.scenarios}
        self._heads: dict[str, bytes] = {}
        self._tails: dict[str, bytes] = {}
        self._middles: dict[tuple[Task, int], bytes] = {}
        self._last: Trial | None = None
        """The trial that was asked about before: the next is mostly a replica of it."""
        self._around = b"", b""
        """What its id is the digest of, before and after the replica."""

    def holds(self, trial: Trial) -> bool:
        """Whether the plan has this trial; one of a scenario that the plan has, and of tasks and params of its."""
        if not self._plan.whole:
            return trial.id in self._selected
        if self._last is None or not _replicas(self._last, trial):
            self._last = trial
            self._around = self._head(trial) + self._middle(trial), self._tail(trial)
        before, after = self._around
        written = b"%b%d%b" % (before, trial.replica, after)
        in_plan = 0 <= trial.replica < self._plan.spec.replicas
        return in_plan and blake2b(written, digest_size=6).hexdigest() == trial.id

    @cached_property
    def _selected(self) -> frozenset[str]:
        return frozenset(trial.id for trial in self._plan.trials)

    @cached_property
    def _agent(self) -> bytes:
        return agent_json(self._plan.spec.agent)

    def _head(self, trial: Trial) -> bytes:
        found = self._heads.get(trial.scenario)
        if found is None:
            found = self._heads[trial.scenario] = ids.head("contract", self._scenarios[trial.scenario])
        return found

    def _middle(self, trial: Trial) -> bytes:
        number = self._plan.params_index(trial.params)
        found = self._middles.get((trial.task, number))
        if found is None:
            found = b"%b,%b," % (canonical(trial.task), canonical(self._plan.spec.params[number]))
            self._middles[trial.task, number] = found
        return found

    def _tail(self, trial: Trial) -> bytes:
        found = self._tails.get(trial.invariant)
        if found is None:
            found = self._tails[trial.invariant] = ids.tail(trial.invariant, self._agent, self._plan.spec.seed)
        return found


def _replicas(one: Trial, other: Trial) -> bool:
    """Whether two trials differ in nothing but their number."""
    return (
        one.scenario == other.scenario
        and one.invariant == other.invariant
        and one.task == other.task
        and one.params == other.params
    )
