"""Agents around agents: the parameters of a trial, filled into what is asked and into the agent's section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from holdfast.model.codec import canonical
from holdfast.model.observation import Answer
from holdfast.model.spec import Task
from holdfast.model.trial import Trial
from holdfast.protocols import Agent, TrialContext
from holdfast.spec.references import interpolate


class WithParams:
    """Asks with `{{ params.x }}` filled in; the trial keeps what was written."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def run(self, task: Task, context: TrialContext) -> Answer:
        turns = tuple([interpolate(turn, context.trial.params) for turn in task.turns])
        return await self._agent.run(task if turns == task.turns else replace(task, turns=turns), context)

    async def reset(self, trial: Trial) -> None:
        await self._agent.reset(trial)

    async def close(self) -> None:
        await self._agent.close()


class ByParams:
    """An agent for each combination of parameters that the agent section refers to."""

    def __init__(self, params: Sequence[Mapping[str, Any]], agents: Sequence[Agent]) -> None:
        self._agents = {canonical(one): agent for one, agent in zip(params, agents, strict=True)}

    async def run(self, task: Task, context: TrialContext) -> Answer:
        return await self._agents[canonical(context.trial.params)].run(task, context)

    async def reset(self, trial: Trial) -> None:
        await self._agents[canonical(trial.params)].reset(trial)

    async def close(self) -> None:
        for agent in self._agents.values():
            await agent.close()
