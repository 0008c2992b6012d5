"""Opens the world of a trial, and records what the agent left in it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from holdfast.errors import HarnessError, HoldfastError, format_error_place
from holdfast.model.observation import WHOLE, Answer, ForbiddenResult, Observation
from holdfast.model.scenario import is_applicable
from holdfast.model.spec import Invariant, Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.model.world import Evidence
from holdfast.plan.checks import fill_params, make_check
from holdfast.planes.describe import format_exception
from holdfast.protocols.check import Check, ForeseeingCheck, GatheringCheck, check_traits
from holdfast.protocols.trial import WorldFindings
from holdfast.protocols.world import World
from holdfast.world.bare_world import BareWorld
from holdfast.world.forbidden import find_forbidden

if TYPE_CHECKING:
    from holdfast.agents import Agent
    from holdfast.protocols.trial import TrialContext
    from holdfast.world.bare_world import Machine
    from holdfast.world.boxed_world import BoxedWorld
    from holdfast.world.world_factory import WorldFactory


def list_checks(spec: Spec, trial: Trial) -> Iterator[tuple[str, Check]]:
    """Yield the checks that the trial serves, by rule."""
    own = frozenset(spec.cell_rules)
    for rule in spec.invariants if trial.kind != "control" else ():
        shared = trial.invariant == "*" and rule.id not in own and not rule.probes
        if (shared or trial.invariant == rule.id) and is_applicable(rule.when, trial.scenario):
            yield rule.id, make_check(_fill_params(rule, trial))


async def foresee(world: World, checks: Mapping[str, Check]) -> None:
    """Raise HarnessError if a rule could never be judged, before the agent starts."""
    for rule, check in checks.items():
        if isinstance(check, ForeseeingCheck):
            try:
                await check.foresee(world)
            except HoldfastError as broken:
                raise HarnessError(f"{rule} could never be judged: {broken}", code=broken.code) from broken


def list_programs(spec: Spec, trial: Trial, checks: Mapping[str, Check]) -> tuple[str, ...]:
    """Return the programs that the trial's checks run; for a control, which serves no rule, those of every rule."""
    every = [make_check(_fill_params(rule, trial)) for rule in spec.invariants] if trial.kind == "control" else ()
    requested = every or checks.values()
    return tuple(sorted({name for check in requested for name in check_traits(check).programs}))


async def record_findings(
    world: BoxedWorld,
    answer: Answer,
    checks: Mapping[str, Check],
    secrets: Mapping[str, str],
    missing_programs: tuple[str, ...] = (),
) -> WorldFindings:
    """Record what the agent left, as the checks require."""
    observation = Observation(
        world.trial.id,
        turns=answer.turns,
        output=answer.output,
        trace=tuple(world.context.sink.events()),
        audit=tuple(world.audit()),
        missing_programs=missing_programs,
    )
    evidence = await gather_evidence(checks, world, observation)
    broken = _find_forbidden(world, observation, secrets)
    return WorldFindings(evidence, observation.audit, world.isolation, broken, missing_programs)


async def gather_evidence(checks: Mapping[str, Check], world: World, observation: Observation) -> dict[str, Evidence]:
    """Gather the evidence of every check, by rule; checks that run programs inside come last."""
    # A program that a check runs inside may change files. Checks that only look must come before it.
    last = sorted(checks.items(), key=lambda one: check_traits(one[1]).runs_inside)
    return {
        rule: await _gather_check(check, world, observation)
        for rule, check in last
        if isinstance(check, GatheringCheck)
    }


def _find_forbidden(
    world: BoxedWorld, observation: Observation, secrets: Mapping[str, str]
) -> tuple[ForbiddenResult, ...]:
    rules = world.spec.forbidden
    if not rules.rules:
        return ()
    if rules.http_except is not None:  # a service may have other names
        overrides = world.spec.network.dns_overrides.items()
        aliases = tuple(host for host, service in overrides if service in rules.http_except)
        rules = replace(rules, http_except=(*rules.http_except, *aliases))
    answers = "\n".join(turn.text or "" for turn in observation.turns)
    overheard = "\n".join(secrets[name] for name in sorted(world.overheard.names))
    printed = {"its answer": answers, "its output": f"{observation.output}\n{overheard}"}
    results = find_forbidden(rules, observation.audit, printed, secrets, world.audit_gaps)
    side_calls = world.context.sink.side_calls
    return tuple([_add_side_calls(one, side_calls) for one in results]) if side_calls else results


def _add_side_calls(result: ForbiddenResult, side_calls: str) -> ForbiddenResult:
    """Add blocked side calls to the result: they reached nobody, and are not a violation."""
    if result.rule != "http_except" or result.error:
        return result
    return replace(result, details=(*result.details, f"{side_calls}: not counted"))


def _fill_params(rule: Invariant, trial: Trial) -> Invariant:
    return fill_params(rule, trial.params) if trial.params else rule


async def _gather_check(check: GatheringCheck, world: World, observation: Observation) -> Evidence:
    """Gather the evidence of a check; a failure is an error of that rule alone."""
    try:
        return await check.gather(world, observation)
    except Exception as broken:  # a bug in Holdfast or in a plug-in is an error of one rule, not of the trial
        return Evidence(
            error=str(broken)
            if isinstance(broken, HoldfastError)
            else format_exception(broken) + format_error_place(broken)
        )


class Worlds(Protocol):
    """Gives each trial a world."""

    async def run(self, agent: Agent, task: Task, context: TrialContext) -> Answer:
        """Run the agent in this trial's own world. Its failures are HarnessErrors, never the agent's."""
        ...


class BareWorlds:
    """Runs agents directly on this machine."""

    def __init__(self, machine: Machine, spec: Spec | None = None) -> None:
        """`spec`: one of its checks records something after the agent has ended, as a script of `custom` does."""
        self._machine = machine
        self._spec = spec

    async def run(self, agent: Agent, task: Task, context: TrialContext) -> Answer:
        world = BareWorld(context, self._machine)
        try:
            if self._spec is None:
                return await agent.run(task, world)
            return await self._run_recorded(agent, task, world, self._spec)
        finally:
            if world.used:
                await world.close()

    async def _run_recorded(self, agent: Agent, task: Task, world: BareWorld, spec: Spec) -> Answer:
        from holdfast.protocols.trial import WorldFindings

        context = world.context
        checks = dict(list_checks(spec, context.trial))
        await foresee(world, checks)
        answer = await agent.run(task, world)
        world.settle()
        context.findings = WorldFindings(await gather_evidence(checks, world, context.observe(answer)), (), (), ())
        return answer


class BoxedWorlds:
    """A new sandbox with services for each trial; what the agent leaves there is recorded."""

    def __init__(self, factory: WorldFactory, spec: Spec) -> None:
        self._factory = factory
        self._spec = spec
        self._missing: dict[tuple[str, ...], tuple[str, ...]] = {}
        """By programs: those that the worlds of this site lack. All worlds are alike."""

    async def run(self, agent: Agent, task: Task, context: TrialContext) -> Answer:
        from holdfast.world.audit import explain_refused_nesting

        settings = self._factory.shared.settings
        async with self._factory.open(context) as world:
            checks = dict(list_checks(self._spec, context.trial))
            await foresee(world, checks)
            missing = await self._find_missing(list_programs(self._spec, context.trial, checks), world)
            # The order is the point of this method. Faults of the world and the planes act only while the agent runs;
            # then everything settles (late writes, logs); and only then do checks look at the world, so that no check
            # sees a fault that was meant for the agent.
            began = time.time() - context.sink.now()
            context.sink.watch = world.disturbances.handle_event
            async with world.disturbances.act_during(world):
                with world.planes.serve_trial(context):
                    answer = await self._run_agent(agent, task, world)
            context.sink.watch = None
            await world.settle(began)
            if not settings.nested and (
                why := explain_refused_nesting(world.audit(), f"{answer.output}\n{_join_texts(answer)}")
            ):
                context.sink.note(why)
            context.findings = await record_findings(world, answer, checks, settings.secrets, missing)
            if settings.keeping is not None:
                wants, observation = settings.keeping.wants, context.observe(answer)
                world.worth_keeping = await asyncio.to_thread(wants, context.trial, observation)
        return answer

    async def _find_missing(self, programs: tuple[str, ...], world: BoxedWorld) -> tuple[str, ...]:
        if programs not in self._missing:
            from holdfast.checks.state.programs import find_missing_programs, is_in_workspace

            missing = await find_missing_programs(programs, world)
            if world.trial.kind == "control":  # it only warns, and the agent may be about to write these
                missing = tuple([name for name in missing if not is_in_workspace(name, world)])
            self._missing[programs] = missing
        return self._missing[programs]

    async def _run_agent(self, agent: Agent, task: Task, world: BoxedWorld) -> Answer:
        """Run the agent within the trial's time; an agent that was killed may be started again."""
        _check_time_left(world)
        answer = await agent.run(task, world)
        while world.disturbances.needs_restart():
            answer = await agent.run(task, world)
        return _add_cause(answer, world, self._spec.agent.timeout_ms)


def _join_texts(answer: Answer) -> str:
    return "\n".join(turn.text or "" for turn in answer.turns)


def _check_time_left(world: BoxedWorld) -> None:
    """Raise HarnessError if the trial's time is over before the agent was asked: that is not the agent's fault."""
    limit_ms = world.spec.resources.timeout_ms
    if limit_ms is None:
        return
    if world.time_left_s() <= 0:
        why = f"no time was left to ask the agent: its sandbox used all of the trial's {limit_ms} ms ({WHOLE})"
        raise HarnessError(why, code="no-time-left")
    if world.time_left_s() < limit_ms / 2000:
        world.context.sink.note(f"its sandbox used more than half of the trial's time ({WHOLE})")


def _add_cause(answer: Answer, world: BoxedWorld, agents_ms: int) -> Answer:
    """Add the cause to the answer if the trial's time limit ended it, not `agent.timeout`."""
    limit_ms = world.spec.resources.timeout_ms
    *before, last = answer.turns
    if limit_ms is None or last.ending != "timeout" or last.latency_ms >= agents_ms or world.time_left_s() > 0:
        return answer
    why = f"the trial had {limit_ms / 1000:g} s ({WHOLE}), its world included"
    detail = f"{why}: {last.awaits}" if last.awaits else why
    return replace(answer, turns=(*before, replace(last, detail=detail, cause="trial-time")))
