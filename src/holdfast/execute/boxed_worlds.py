"""The sandboxed worlds of a site: their backend, what they see of this machine, and how a trial runs in one."""

from __future__ import annotations

import asyncio
import site as python_site
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec.structs import replace

from holdfast import plugins
from holdfast.agents import Agent
from holdfast.checks.state.programs import find_missing_programs, is_in_workspace
from holdfast.errors import HarnessError, UserError
from holdfast.execute.resolved_spec import WorldOptions, make_fill
from holdfast.execute.site import fill_own_params, foresee, gather_evidence, list_checks
from holdfast.model.codes import RunNote
from holdfast.model.observation import WHOLE, Answer, ForbiddenResult, Observation
from holdfast.model.spec import AgentSpec, Spec
from holdfast.model.task import Task
from holdfast.model.trial import Trial
from holdfast.plan.checks import get_traits, make_check
from holdfast.planes.site_planes import SitePlanes
from holdfast.processes import scratch
from holdfast.protocols.check import Check, check_traits
from holdfast.protocols.sandbox import SandboxBackend
from holdfast.protocols.trial import TrialContext, WorldFindings
from holdfast.reading.program_word import find_program_calls
from holdfast.world.agent_mounts import MountedAgent
from holdfast.world.audit import explain_refused_nesting, find_forbidden
from holdfast.world.boxed_world import BoxedWorld
from holdfast.world.program_search import ProgramSearch, make_search
from holdfast.world.sandbox.system import select_mounts
from holdfast.world.site_worlds import SiteWorlds, WorldSettings, list_unsupported, refuse_lacking
from holdfast.world.world_factory import open_world

OWN = Path(sys.executable).parent
"""The folder of Holdfast's own programs."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def list_interpreter_paths() -> dict[str, Path]:
    """Return the folders of this Python and of Holdfast, for Python agents and MCP relays."""
    packages = [*python_site.getsitepackages(), str(Path(plugins.__file__).parents[1])]
    return select_mounts([sys.prefix, sys.base_prefix, *packages], without=("/usr",))


def build_environ(folders: Sequence[str] = ()) -> dict[str, str]:
    """Return the variables of every program in a world; `folders` come first in its search path."""
    usual = [str(OWN), *PATH.split(":")]
    return {"PATH": ":".join([*[folder for folder in folders if folder not in usual], *usual])}


def make_program_search(spec: Spec, agent: AgentSpec, root: Path, environ: Mapping[str, str]) -> ProgramSearch:
    """Make the search for the programs of an agent's section on this machine."""
    setup = {} if spec.world is None else spec.world.setup.env
    others = () if spec.world is None else tuple(dict.fromkeys(_list_other_programs(spec)))
    return make_search(environ, root, OWN, {**setup, **agent.env}.get("PATH"), others)


def _list_other_programs(spec: Spec) -> Iterator[str]:
    """Yield the programs that the setup and the checks of a spec run."""
    assert spec.world is not None
    for command in spec.world.setup.commands:
        yield from (call.program for call in find_program_calls(command))
    for rule in spec.invariants:
        yield from get_traits(rule).programs


def find_backend(name: str) -> type[SandboxBackend]:
    """Return the backend of that name; raise UserError if there is none."""
    plugin: type[SandboxBackend] | None = plugins.find("sandboxes", name)
    if plugin is None:
        raise UserError(
            f"there is no sandbox backend {name!r}",
            code="sandbox-unavailable",
            hint=f"available: {', '.join(plugins.list_names('sandboxes'))}",
        )
    return plugin


def make_sandbox_note(backend: SandboxBackend) -> RunNote:
    """Make the note that says how many sandbox features are enforced here, and which are not."""
    missing: dict[str, list[str]] = {}
    for entry in backend.isolation:
        if not entry.enforced:
            missing.setdefault(entry.why, []).append(entry.feature)
    enforced = sum(entry.enforced for entry in backend.isolation)
    text = f"sandbox {backend.name}: {enforced} of {len(backend.isolation)} features enforced"
    if missing:
        lacking = (f"{', '.join(features)} ({why})" for why, features in missing.items())
        text += f". Not enforced here: {'; '.join(lacking)}"
    return RunNote("sandbox", text, tuple(entry for features in missing.values() for entry in features))


async def open_worlds(
    spec: Spec,
    mounted: MountedAgent,
    root: Path,
    environ: Mapping[str, str],
    options: WorldOptions,
    planes: SitePlanes,
) -> SiteWorlds:
    """Open the backend; raise UserError if it does not work here, or if the user is strict and it lacks a feature."""
    assert spec.world is not None
    agent, mounts, programs = mounted.agent, mounted.mounts, mounted.programs
    settings = WorldSettings(
        fill=make_fill(spec.world, environ, options.secrets),
        root=root,
        secrets=options.secrets,
        visible={**list_interpreter_paths(), **programs.visible, **mounts.visible},
        links=programs.links,
        nested=agent.nested_sandbox,
        mounts=mounts,
        environ={**build_environ(programs.folders), **programs.variables},
        agent_environ=agent.env,
        keeping=options.keep,
        on_message=options.on_message,
    )
    visible = (*settings.visible, *settings.links)
    async with AsyncExitStack() as opened:
        folder = scratch.make("world", in_memory=True)
        opened.callback(scratch.remove, folder)
        backend = await find_backend(options.backend).open_backend(folder, spec.world.base)
        opened.push_async_callback(backend.close)
        lacks = await list_unsupported(spec.world, spec.scenarios, backend, agent=agent, visible=visible)
        if options.strict:
            refuse_lacking(spec.world, (*backend.isolation, *lacks), backend.name)
        opened.pop_all()  # from here on the worlds close it
    return SiteWorlds(settings, backend, planes, folder, lacks)


class BoxedWorlds:
    """A new sandbox with services for each trial; what the agent leaves there is recorded."""

    def __init__(self, site: SiteWorlds, spec: Spec) -> None:
        self._site = site
        self._spec = spec
        self._missing: dict[tuple[str, ...], tuple[str, ...]] = {}
        """By programs: those that the worlds of this site lack. All worlds are alike."""

    async def run(self, agent: Agent, task: Task, context: TrialContext) -> Answer:
        settings = self._site.settings
        async with open_world(self._site, context) as world:
            checks = dict(list_checks(self._spec, context.trial))
            await foresee(world, checks)
            missing = await self._find_missing(list_programs(self._spec, context.trial, checks), world)
            # The order is the point of this method. Faults of the world and the planes act only while the agent runs;
            # then everything settles (late writes, logs); and only then do checks look at the world, so that no check
            # sees a fault that was meant for the agent.
            began = time.time() - context.sink.now()
            context.sink.watcher = world.disturbances
            async with world.disturbances.act_during(world):
                with world.planes.serve_trial(context):
                    answer = await self._run_agent(agent, task, world)
            context.sink.watcher = None
            await world.settle(began)
            texts = "\n".join([answer.output, *(turn.text or "" for turn in answer.turns)])
            if not settings.nested and (why := explain_refused_nesting(world.audit(), texts)):
                context.sink.note(why)
            context.findings = await record_findings(world, answer, checks, settings.secrets, missing)
            if settings.keeping is not None:
                wants, observation = settings.keeping.wants, context.observe(answer)
                world.worth_keeping = await asyncio.to_thread(wants, context.trial, observation)
        return answer

    async def _find_missing(self, programs: tuple[str, ...], world: BoxedWorld) -> tuple[str, ...]:
        if programs not in self._missing:
            missing = await find_missing_programs(programs, world)
            if world.trial.kind == "control":  # it only warns, and the agent may be about to write these
                missing = tuple([name for name in missing if not is_in_workspace(name, world)])
            self._missing[programs] = missing
        return self._missing[programs]

    async def _run_agent(self, agent: Agent, task: Task, world: BoxedWorld) -> Answer:
        """Run the agent within the trial's time; an agent that was killed may be started again and continues."""
        _check_time_left(world)
        answer = await agent.run(task, world)
        turns = world.context.turns
        while await world.disturbances.needs_restart():
            # A user who lost the connection repeats the last question, not those that were answered before. If Holdfast
            # repeated all of them, a second write would be its own doing. A last answer that was already on its way
            # when the agent was killed is lost, so that a fast agent does not win the race against the fault.
            turns.restart(answer.turns)
            again = await agent.run(task, world)
            answer = replace(again, turns=(*turns.earlier, *again.turns))
        return _add_cause(answer, world, self._spec.agent.timeout_ms)


def _check_time_left(world: BoxedWorld) -> None:
    """Raise HarnessError if the trial's time is over before the agent was asked: that is not the agent's fault."""
    limit_ms = world.spec.resources.timeout_ms
    if limit_ms is None:
        return
    if world.time_left_s() <= 0:
        why = f"no time was left to call the agent: its sandbox used all of the trial's {limit_ms} ms ({WHOLE})"
        raise HarnessError(why, code="no-time-left")
    if world.time_left_s() < limit_ms / 2000:
        world.context.sink.note(f"its sandbox used more than half of the trial's time ({WHOLE})")


def _add_cause(answer: Answer, world: BoxedWorld, agents_ms: int) -> Answer:
    """Add the cause to the answer if the trial's time limit ended it, not `agent.timeout`."""
    limit_ms = world.spec.resources.timeout_ms
    *before, last = answer.turns
    if limit_ms is None or last.ending != "timeout" or last.latency_ms >= agents_ms or world.time_left_s() > 0:
        return answer
    why = f"the trial had {limit_ms / 1000:g} s ({WHOLE}), including its sandbox"
    detail = f"{why}: {last.awaits}" if last.awaits else why
    return replace(answer, turns=(*before, replace(last, detail=detail, cause="trial-time")))


def list_programs(spec: Spec, trial: Trial, checks: Mapping[str, Check]) -> tuple[str, ...]:
    """Return the programs that the trial's checks run; for a control, which serves no rule, those of every rule."""
    every = [make_check(fill_own_params(rule, trial)) for rule in spec.invariants] if trial.kind == "control" else ()
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
    leaks = "\n".join(secrets[name] for name in sorted(world.leaks.names))
    printed = {"its answer": answers, "its output": f"{observation.output}\n{leaks}"}
    results = find_forbidden(rules, observation.audit, printed, secrets, world.audit_gaps)
    # Blocked side calls are shown, too: they reached nobody, and are not a violation.
    side_calls = (f"{world.context.sink.side_calls}: not counted",) if world.context.sink.side_calls else ()
    return tuple(
        [
            replace(result, details=(*result.details, *side_calls))
            if result.rule == "http_except" and not result.error
            else result
            for result in results
        ]
    )
