"""A Site: what one worker keeps open between trials. It is opened once from a Spec, and closed at the end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import UNSET
from msgspec.structs import replace

from holdfast.errors import HarnessError, HoldfastError, format_error_place
from holdfast.execute.plane_needs import needs_tool_check
from holdfast.model.codec import encode_canonical
from holdfast.model.codes import RunNote
from holdfast.model.observation import Answer, Observation
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
from holdfast.spec.references import interpolate
from holdfast.world.bare_world import BareWorld, Machine

if TYPE_CHECKING:
    from holdfast.agents import Agent
    from holdfast.execute.simulated_users import SimulatedUsers
    from holdfast.protocols.trial import TrialContext
    from holdfast.world.program_search import ProgramStamps


class Site:
    """The opened agent, and the worlds of its trials."""

    def __init__(
        self,
        spec: Spec,
        agent: Agent,
        concurrency: int,
        notes: tuple[RunNote, ...] = (),
        targets: tuple[str, ...] = (),
        *,
        worlds: Worlds | None = None,
    ) -> None:
        self.spec = spec
        self.targets = targets
        """Tools and model functions that faults can hit."""
        self.awaits_tools = needs_tool_check(spec, targets)
        """The next calm trial decides whether tool faults can be met at all."""
        self.agent = agent
        self.worlds: Worlds = worlds or BareWorlds(Machine(Path(spec.path).parent, {}))
        self.concurrency = concurrency
        self.notes = notes
        self.simulate = spec.agent.simulate == "answer"
        self.limits = spec.agent.limits
        """The limits of a trial; None: no limit."""
        self.has_params = spec.params != ({},)
        self.by_params: dict[bytes, Site] = {}
        """Other sites for trials with these parameters, because the agent's section refers to them."""
        self.programs: ProgramStamps | None = None
        """The agent's programs, as they were when it was opened."""
        self.users: SimulatedUsers | None = None
        """The simulated users of tasks that have one."""
        self.close_rest: Callable[[], Awaitable[None]] | None = None
        """Closes what the agent was opened with."""

    def add(self, params: Mapping[str, Any], site: Site) -> None:
        """Run trials with these parameters on that site."""
        self.by_params[encode_canonical(params)] = site

    def fill_task(self, trial: Trial) -> Task:
        """Return the task with `{{ params.x }}` filled in; the trial keeps what was written."""
        task = trial.task
        turns = tuple([interpolate(turn, trial.params) for turn in task.turns])
        if task.user is not UNSET and task.user.goal:
            user = replace(task.user, goal=interpolate(task.user.goal, trial.params))
            return replace(task, turns=turns, user=user)
        return task if turns == task.turns else replace(task, turns=turns)

    def list_changed_programs(self) -> tuple[str, ...]:
        """Return the agent's programs that changed since it was opened."""
        sites = {id(site): site for site in (self, *self.by_params.values())}.values()
        return tuple(dict.fromkeys(path for site in sites if site.programs for path in site.programs.list_changed()))

    async def close(self) -> None:
        """Close every agent, then what it was opened with; one failure does not stop the others."""
        async with AsyncExitStack() as parts:
            for site in self.by_params.values():
                if site is not self:
                    parts.push_async_callback(site.close)
            if self.close_rest is not None:
                parts.push_async_callback(self.close_rest)
            parts.push_async_callback(self.agent.close)


def list_checks(spec: Spec, trial: Trial) -> Iterator[tuple[str, Check]]:
    """Yield the checks that the trial serves, by rule."""
    own = frozenset(spec.cell_rules)
    for rule in spec.invariants if trial.kind != "control" else ():
        shared = trial.invariant == "*" and rule.id not in own and not rule.probes
        if (shared or trial.invariant == rule.id) and is_applicable(rule.when, trial.scenario):
            yield rule.id, make_check(fill_own_params(rule, trial))


async def foresee(world: World, checks: Mapping[str, Check]) -> None:
    """Raise HarnessError if a rule could never be judged, before the agent starts."""
    for rule, check in checks.items():
        if isinstance(check, ForeseeingCheck):
            try:
                await check.foresee(world)
            except HoldfastError as broken:
                raise HarnessError(f"{rule} could never be judged: {broken}", code=broken.code) from broken


async def gather_evidence(checks: Mapping[str, Check], world: World, observation: Observation) -> dict[str, Evidence]:
    """Gather the evidence of every check, by rule; checks that run programs inside come last."""
    # A program that a check runs inside may change files. Checks that only look must come before it.
    last = sorted(checks.items(), key=lambda one: check_traits(one[1]).runs_inside)
    return {
        rule: await _gather_check(check, world, observation)
        for rule, check in last
        if isinstance(check, GatheringCheck)
    }


def fill_own_params(rule: Invariant, trial: Trial) -> Invariant:
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
        context = world.context
        checks = dict(list_checks(spec, context.trial))
        await foresee(world, checks)
        answer = await agent.run(task, world)
        world.settle()
        context.findings = WorldFindings(await gather_evidence(checks, world, context.observe(answer)), (), (), ())
        return answer
