"""An agent in its world: opened around it for each trial, looked at when it has ended, and gone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from holdfast.errors import HarnessError, HoldfastError
from holdfast.model.observation import WHOLE, Answer, ForbiddenResult, Observation
from holdfast.model.spec import CALM, Invariant, Scenario, Spec, Task
from holdfast.model.trial import Trial
from holdfast.model.when import applies
from holdfast.model.world import Evidence
from holdfast.plan.checks import make_check, runs_inside
from holdfast.plan.params import with_params
from holdfast.planes.describe import said
from holdfast.planes.site_planes import SitePlanes
from holdfast.protocols import Agent, Check, ForeseeingCheck, GatheringCheck, TrialContext, WorldFindings
from holdfast.world.boxed_world import BoxedWorld
from holdfast.world.forbidden import forbidden
from holdfast.world.world_factory import WorldFactory


class Surrounded:
    """Gives the agent a world, and records what it leaves there."""

    def __init__(self, agent: Agent, worlds: WorldFactory, site_planes: SitePlanes, spec: Spec) -> None:
        self._agent = agent
        self._worlds = worlds
        self._site_planes = site_planes
        self._spec = spec
        self._scenarios = {scenario.name: scenario for scenario in spec.scenarios}

    async def run(self, task: Task, context: TrialContext) -> Answer:
        """One trial. Whatever the world cannot do is a HarnessError: never the agent's doing."""
        scenario = self._scenarios.get(context.trial.scenario, CALM)
        async with self._worlds.open(context) as world:
            checks = dict(self._checks(context.trial, scenario))
            await _foresee(world, checks)
            began = time.time() - context.now()
            context.house = world
            context.watch = world.disturbances.saw
            async with world.disturbances.around(world):
                with world.address.carry(context):
                    answer = await self._answer(task, context, world)
            context.watch = None
            await world.settle(began)
            context.found(await self._found(world, context, answer, checks))
            keeping = self._worlds.order.keeping
            if keeping is not None:
                world.worth_a_look = await asyncio.to_thread(keeping.wants, context.trial, context.seen(answer))
        return answer

    async def _answer(self, task: Task, context: TrialContext, world: BoxedWorld) -> Answer:
        """What the agent gives in the time that the trial has; one that was killed may be started again."""
        _leave_time(world, context)
        answer = await self._agent.run(task, context)
        while world.disturbances.restart():
            answer = await self._agent.run(task, context)
        return _with_cause(answer, world, self._spec.agent.timeout_ms)

    async def reset(self, trial: Trial) -> None:
        await self._agent.reset(trial)

    async def close(self) -> None:
        try:
            await self._agent.close()
        finally:
            try:
                await self._worlds.close()
            finally:
                await self._site_planes.close()

    def _checks(self, trial: Trial, scenario: Scenario) -> Iterator[tuple[str, Check]]:
        """The checks that the trial serves, by rule."""
        own = frozenset(self._spec.cell_rules)
        for rule in self._spec.invariants if trial.kind != "control" else ():
            shared = trial.invariant == "*" and rule.id not in own and not rule.probes
            if (shared or trial.invariant == rule.id) and applies(rule.when, scenario):
                yield rule.id, make_check(_filled(rule, trial))

    async def _found(
        self, world: BoxedWorld, context: TrialContext, answer: Answer, checks: Mapping[str, Check]
    ) -> WorldFindings:
        seen = Observation(
            context.trial.id,
            turns=answer.turns,
            output=answer.output,
            trace=tuple(context.traced()),
            audit=tuple(world.audit()),
        )
        evidence = {}
        for rule, check in sorted(checks.items(), key=lambda one: runs_inside(one[1])):
            if isinstance(check, GatheringCheck):
                evidence[rule] = await _gathered(check, world, seen)
        return WorldFindings(evidence, seen.audit, world.isolation, self._forbidden(world, seen))

    def _forbidden(self, world: BoxedWorld, seen: Observation) -> tuple[ForbiddenResult, ...]:
        rules = world.spec.forbidden
        if not rules.rules:
            return ()
        if rules.http_except is not None:  # a service may be reached by other names
            led = world.spec.network.dns_overrides.items()
            also = tuple(host for host, service in led if service in rules.http_except)
            rules = replace(rules, http_except=(*rules.http_except, *also))
        answers = "\n".join(turn.text or "" for turn in seen.turns)
        secrets = self._worlds.order.secrets
        overheard = "\n".join(secrets[name] for name in sorted(world.overheard.names))
        printed = {"its answer": answers, "its output": f"{seen.output}\n{overheard}"}
        return forbidden(rules, seen.audit, printed, self._worlds.order.secrets, world.unseen)


def _leave_time(world: BoxedWorld, context: TrialContext) -> None:
    """HarnessError if nothing is left of the trial's time before the agent was asked at all: that is our doing."""
    limit_ms = world.spec.resources.timeout_ms
    if limit_ms is None:
        return
    if world.time_left_s() <= 0:
        why = f"no time was left to ask the agent: its world took all of the trial's {limit_ms} ms ({WHOLE})"
        raise HarnessError(why)
    if world.time_left_s() < limit_ms / 2000:
        context.note(f"its world took over half of the trial's time ({WHOLE})")


def _with_cause(answer: Answer, world: BoxedWorld, agents_ms: int) -> Answer:
    """The answer, with what ended it where that was the trial's time and not `agent.timeout`."""
    limit_ms = world.spec.resources.timeout_ms
    *before, last = answer.turns
    if limit_ms is None or last.ending != "timeout" or last.latency_ms >= agents_ms or world.time_left_s() > 0:
        return answer
    why = f"the trial had {limit_ms / 1000:g} s ({WHOLE}), its world included"
    return replace(answer, turns=(*before, replace(last, detail=why)))


def _filled(rule: Invariant, trial: Trial) -> Invariant:
    return with_params(rule, trial.params) if trial.params else rule


async def _foresee(world: BoxedWorld, checks: Mapping[str, Check]) -> None:
    for rule, check in checks.items():
        if isinstance(check, ForeseeingCheck):
            try:
                await check.foresee(world)
            except HoldfastError as broken:
                raise HarnessError(f"{rule} could never be judged: {broken}") from broken


async def _gathered(check: GatheringCheck, world: BoxedWorld, seen: Observation) -> Evidence:
    """What a check records; where it cannot, why: an error of that rule alone."""
    try:
        return await check.gather(world, seen)
    except Exception as broken:  # a bug of ours or of a plug-in is one rule's error, not the trial's
        return Evidence(error=str(broken) if isinstance(broken, HoldfastError) else said(broken))
