"""Whether a stored trial belongs to a plan, decided by its id."""

from __future__ import annotations

from functools import cached_property
from hashlib import blake2b

from holdfast.model.codec import encode_canonical
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.plan import Plan, encode_agent
from holdfast.plan.layout import encode_head, encode_tail


class PlannedTrials:
    """The trials of a plan. No trial is created for the lookup: an id is the digest of what decides a trial."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._scenarios = {scenario.name: scenario for scenario in plan.scenarios}
        self._heads: dict[str, bytes] = {}
        self._tails: dict[str, bytes] = {}
        self._middles: dict[tuple[Task, int], bytes] = {}
        self._last: tuple[str, str, int, Task] | None = None
        """The identity of the previous trial: the next is usually a replica of it."""
        self._around = b"", b""
        """The text that its id is the digest of, before and after the replica."""

    def has_trial(self, trial: Trial) -> bool:
        """Return whether the plan has this trial; its scenario, task and params must be the plan's."""
        if not self._plan.whole:
            return trial.id in self._selected
        params = self._plan.get_params_index(trial.params)  # 1 and true are equal values, and different params
        of = trial.scenario.name, trial.invariant, params, trial.task
        # An id is the digest of a text in which only the replica differs between neighbours. The text around the
        # replica is made once for all of them, which leaves one short digest for each trial.
        if of != self._last:
            self._around = self._get_head(trial) + self._get_middle(trial.task, params), self._get_tail(trial)
            self._last = of  # only here: there may be no such scenario
        before, after = self._around
        written = b"%b%d%b" % (before, trial.replica, after)
        in_plan = 0 <= trial.replica < self._plan.spec.replicas
        return in_plan and blake2b(written, digest_size=6).hexdigest() == trial.id

    @cached_property
    def _selected(self) -> frozenset[str]:
        return frozenset(trial.id for trial in self._plan.trials)

    @cached_property
    def _agent(self) -> bytes:
        return encode_agent(self._plan.spec.agent)

    def _get_head(self, trial: Trial) -> bytes:
        name = trial.scenario.name
        head = self._heads.get(name)
        if head is None:
            head = self._heads[name] = encode_head("contract", self._scenarios[name])
        return head

    def _get_middle(self, task: Task, params: int) -> bytes:
        middle = self._middles.get((task, params))
        if middle is None:
            middle = b"%b,%b," % (encode_canonical(task), encode_canonical(self._plan.spec.params[params]))
            self._middles[task, params] = middle
        return middle

    def _get_tail(self, trial: Trial) -> bytes:
        tail = self._tails.get(trial.invariant)
        if tail is None:
            tail = self._tails[trial.invariant] = encode_tail(trial.invariant, self._agent, self._plan.spec.seed)
        return tail
