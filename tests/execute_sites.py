"""Agents made of a function, on a Site, without any process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from holdfast.execute.site import Site
from holdfast.execute.trial import run_trial
from holdfast.model.observation import Answer, Observation, Turn
from holdfast.model.scenario import Injection, Scenario, Schedule
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.protocols.trial import TrialContext
from holdfast.protocols.world import World

Act = Callable[[Task, TrialContext], Awaitable[Answer]]


class Scripted:
    """An agent that does what a test says."""

    def __init__(self, act: Act) -> None:
        self._act = act
        self.closed = False

    async def run(self, task: Task, world: World) -> Answer:
        return await self._act(task, world.context)

    async def close(self) -> None:
        self.closed = True


def says(*texts: str) -> Act:
    async def act(task: Task, context: TrialContext) -> Answer:
        return Answer(
            tuple(
                Turn(context.injector.rewrite_turn(asked), text, 10.0)
                for asked, text in zip(task.turns, texts, strict=True)
            )
        )

    return act


def site_of(act: Act, *injections: Injection, concurrency: int = 1, retries: int = 0, **agent: Any) -> Site:
    section = AgentSpec(type="http", endpoint="http://agent", **agent)
    scenarios = (Scenario("calm"), Scenario("s", injections))
    spec = Spec(path="spec.yaml", agent=section, scenarios=scenarios, retries=retries)
    return Site(spec, Scripted(act), concurrency)


def trial_of(*turns: str, scenario: str = "s", n: int = 0) -> Trial:
    return Trial(id=f"{n:012x}", kind="contract", scenario=Scenario(scenario), task=Task(turns or ("hi",)))


def fault(target: str, mode: str, *, plane: Any = "tool", **settings: Any) -> Injection:
    schedule = {key: settings.pop(key) for key in list(settings) if key in Schedule.__struct_fields__}
    return Injection(plane, target, mode, settings, Schedule(**schedule))


def seen_of(site: Site, trial: Trial | None = None) -> Observation:
    """The trial is asked in the scenario of the site's spec that it names."""
    trial = trial or trial_of()
    return asyncio.run(run_trial(site, replace(trial, scenario=site.spec.get_scenario(trial.scenario.name))))
