"""Whether a stored trial belongs to a plan, decided by its id."""

from __future__ import annotations

from functools import cache, cached_property
from hashlib import blake2b

from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.plan import Plan, encode_agent
from holdfast.plan.layout import encode_head, encode_middle, encode_tail


class PlannedTrials:
    """The trials of a plan. No trial is created for the lookup: an id is the digest of what decides a trial."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        scenarios = {scenario.name: scenario for scenario in plan.scenarios}
        agent, seed, params = encode_agent(plan.spec.agent), plan.spec.seed, plan.spec.params

        # An id is the digest of a text with three parts around the replica, each shared by many trials.
        @cache
        def head(scenario: str) -> bytes:
            return encode_head("contract", scenarios[scenario])

        @cache
        def middle(task: Task, number: int) -> bytes:
            return encode_middle(task, params[number])

        @cache
        def tail(invariant: str) -> bytes:
            return encode_tail(invariant, agent, seed)

        self._head, self._middle, self._tail = head, middle, tail

    def has_trial(self, trial: Trial) -> bool:
        """Return whether the plan has this trial; its task and params must be the plan's."""
        if not self._plan.whole:
            return trial.id in self._selected
        try:
            # 1 and true are equal values, and different params
            number = self._plan.get_params_index(trial.params)
            before = self._head(trial.scenario.name) + self._middle(trial.task, number)
        except KeyError:
            return False
        text = b"%b%d%b" % (before, trial.replica, self._tail(trial.invariant))
        in_plan = 0 <= trial.replica < self._plan.spec.replicas
        return in_plan and blake2b(text, digest_size=6).hexdigest() == trial.id

    @cached_property
    def _selected(self) -> frozenset[str]:
        return frozenset(trial.id for trial in self._plan.trials)
