"""The models that Holdfast itself asks: judges of rules, while trials wait for the answers, and simulated users."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from holdfast import plugins
from holdfast.errors import PluginError, UserError
from holdfast.folders import JUDGE_CACHE, USER_CACHE
from holdfast.model.observation import Observation
from holdfast.model.spec import Invariant, Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.world import Evidence
from holdfast.plan.checks import fill_params, get_traits, make_check
from holdfast.protocols.check import ConsultingCheck
from holdfast.store.rundir import RunDir

if TYPE_CHECKING:
    from holdfast.execute.simulated_users import SimulatedUsers
    from holdfast.judge.consult import Consultation, ModelRole

WAITING = 16
"""Trials consulted concurrently: each holds its observation in memory."""


class Consultations:
    """Asks models for the rules that need one. If no rule does, nothing is opened."""

    def __init__(self, spec: Spec, environ: Mapping[str, str], run: RunDir) -> None:
        self._spec = spec
        self._environ = environ
        self._cache = run.own_folder / JUDGE_CACHE
        self._asking = frozenset(rule.id for rule in spec.invariants if consults_model(rule))
        self._consultation: Consultation | None = None

    def __bool__(self) -> bool:
        return bool(self._asking)

    def open(self) -> None:
        """Call before an agent runs: cache entries that others write from here on are not trusted."""
        if self._asking and self._consultation is None:
            from holdfast.judge.consult import JUDGE

            self._consultation = _open_consultation(self._spec, self._environ, self._cache, JUDGE)

    def select_rules(self, rules: Iterable[Invariant], observation: Observation) -> list[Invariant]:
        """Return the rules that ask a model about this observation; none if a harness error came before the answer."""
        if not self._asking or (observation.error and not observation.turns):
            return []
        return [rule for rule in rules if rule.id in self._asking]

    async def ask_models(
        self, rules: Iterable[Invariant], trial: Trial, observation: Observation, control: Observation | None
    ) -> dict[str, Evidence]:
        """Return what the model answered, by rule. Secrets in both observations must be masked: nothing else is sent
        out.
        """
        from holdfast.judge.consult import add_printed_answers, consult_model

        self.open()
        assert self._consultation is not None
        printed = add_printed_answers(self._spec.agent, observation)
        answers = {}
        for rule in rules:
            check = make_check(fill_params(rule, trial.params) if trial.params else rule)
            evidence = printed.evidence.get(rule.id)
            answers[rule.id] = await consult_model(check, printed, control, evidence, self._consultation)
        return answers

    async def close(self) -> None:
        if self._consultation is not None:
            await self._consultation.close()
            self._consultation = None


class Waiting:
    """Runs a limited number of tasks next to the trials. An exception is raised when the next task is added."""

    def __init__(self, most: int = WAITING) -> None:
        self._most = most
        self._tasks: set[asyncio.Task[None]] = set()

    async def add(self, work: Coroutine[Any, Any, None]) -> None:
        """Start the task as soon as there is room."""
        self._tasks.add(asyncio.create_task(work))
        # Waiting here, and not before the next trial is asked, slows the agent's trials down to the judge's speed, and
        # limits the observations in memory.
        if len(self._tasks) >= self._most:
            await self._await_some(asyncio.FIRST_COMPLETED)

    async def finish(self) -> None:
        """Wait for all tasks."""
        while self._tasks:
            await self._await_some(asyncio.ALL_COMPLETED)

    async def cancel(self) -> None:
        """Cancel the tasks that are not done."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _await_some(self, until: str) -> None:
        done, self._tasks = await asyncio.wait(self._tasks, return_when=until)
        broken = [failure for failure in (task.exception() for task in done) if failure is not None]
        if broken:
            raise broken[0]


def check_judges(spec: Spec, rules: Iterable[Invariant], environ: Mapping[str, str]) -> None:
    """Raise UserError if a judging model has no key, before the agent is asked."""
    asking = [rule for rule in rules if consults_model(rule)]
    rules_by_model = {
        str(fill_params(rule, params).settings.get("model", "")): rule for rule in asking for params in spec.params
    }
    whose = {model: f"rule {rule.id}: the model {model} that judges" for model, rule in rules_by_model.items()}
    _check_keys(spec, environ, whose)


def consults_model(rule: Invariant) -> bool:
    """Return whether the rule's check consults a model."""
    plugin = plugins.find("checks", rule.check)
    if plugin is None or not issubclass(plugin, ConsultingCheck):
        return False
    try:
        return get_traits(rule).asks_model
    except PluginError:
        return False  # it cannot be judged either, and the judge reports that


@asynccontextmanager
async def open_users(
    spec: Spec, environ: Mapping[str, str], run: RunDir, mask: Callable[[str], str]
) -> AsyncIterator[SimulatedUsers]:
    """Open the simulated users of the run. Cache entries that others write from here on are not trusted."""
    from holdfast.execute.simulated_users import SimulatedUsers
    from holdfast.judge.consult import PLAYER

    asks = any(task.user is not UNSET and task.user.model for task in spec.tasks)
    consultation = _open_consultation(spec, environ, run.own_folder / USER_CACHE, PLAYER) if asks else None
    try:
        yield SimulatedUsers(Path(spec.path).resolve().parent, consultation, mask)
    finally:
        if consultation is not None:
            await consultation.close()


def check_users(spec: Spec, environ: Mapping[str, str]) -> None:
    """Raise UserError if a model that plays a user has no key, before the agent is asked."""
    models = [task.user.model for task in spec.tasks if task.user is not UNSET and task.user.model]
    _check_keys(spec, environ, {model: f"the model {model} that plays the user" for model in models})


def _check_keys(spec: Spec, environ: Mapping[str, str], whose: Mapping[str, str]) -> None:
    """Raise UserError if one of the models has no key; `whose` describes each model by its role."""
    if not whose:
        return
    from holdfast.execute.resolved_spec import resolve_models
    from holdfast.judge.judges import find_missing_key

    models = resolve_models(spec, environ)
    for model, description in whose.items():
        variable = find_missing_key(models, model, environ)
        if variable:
            hint = f"set {variable}, or describe it in models:"
            raise UserError(
                f"{description} has no key: {variable} is not set", code="model-missing", hint=hint, key="models"
            )


def _open_consultation(spec: Spec, environ: Mapping[str, str], cache: Path, role: ModelRole) -> Consultation:
    from holdfast.execute.resolved_spec import resolve_models
    from holdfast.judge.consult import AdviceCache, Consultation

    models, root = resolve_models(spec, environ), Path(spec.path).resolve().parent
    return Consultation(models, environ, root, AdviceCache(cache), retries=spec.retries, role=role)


def count_user_calls(task: Task) -> int:
    """Return the most model calls that one conversation can make without cached replies."""
    return 0 if task.user is UNSET or not task.user.model else task.max_turns - len(task.turns)
