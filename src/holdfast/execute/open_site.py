"""Opens a Site: the agent of a spec, on this machine or for sandboxes, with the planes it needs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import AgentUnavailable
from holdfast.execute.plane_needs import check_targets, list_scenarios, needs_planes, needs_web_plane
from holdfast.execute.resolved_spec import (
    DEFAULT_WORLD,
    LIVE_MODELS,
    ModelOptions,
    WorldOptions,
    add_position,
    has_param_references,
    resolve_agent,
)
from holdfast.execute.site import BareWorlds, Site
from holdfast.folders import get_own_folder
from holdfast.model.codes import RunNote
from holdfast.model.spec import AgentSpec, Spec
from holdfast.world.bare_world import Machine

if TYPE_CHECKING:
    from holdfast.agents import Agent
    from holdfast.planes.site_planes import SitePlanes

_INLINE = "the agent runs inside Holdfast's own process: a hang or crash ends the run"


async def open_site(
    spec: Spec,
    *,
    environ: Mapping[str, str],
    concurrency: int | None = None,
    models: ModelOptions = LIVE_MODELS,
    world: WorldOptions = DEFAULT_WORLD,
) -> Site:
    """Open the agent and its surroundings; raise AgentUnavailable or SpecError if that fails."""
    opening = _SiteOpening(spec, environ, count_slots(spec, concurrency), models, world)
    try:
        return await opening.open_all()
    except AgentUnavailable as gone:
        raise add_position(spec, gone) from gone


@dataclass(frozen=True)
class _SiteOpening:
    """The inputs for opening a site."""

    spec: Spec
    environ: Mapping[str, str]
    slots: int
    models: ModelOptions
    world: WorldOptions

    @property
    def root(self) -> Path:
        return Path(self.spec.path).resolve().parent

    async def open_all(self) -> Site:
        """Open the site of the agent, or of each variant that the parameters define."""
        spec = self.spec
        if spec.params == ({},):
            return await self.open_agent(self.resolve_section({}))
        if not has_param_references(spec.agent):
            return await self.open_agent(self.resolve_section(spec.params[0]))
        # Each combination of parameters has its own agent, because its section refers to them. The first site holds the
        # others: callers see one site, and close one.
        first: Site | None = None
        try:
            for params in spec.params:
                site = await self.open_agent(self.resolve_section(params))
                first = first or site
                first.add(params, site)
        except BaseException:
            if first is not None:
                await first.close()
            raise
        assert first is not None, "a spec has at least one combination of parameters"
        return first

    def resolve_section(self, params: Mapping[str, Any]) -> AgentSpec:
        """Return the spec's section with its references resolved."""
        return resolve_agent(self.spec.agent, self.environ, params, self.world.secrets)

    async def open_agent(self, agent: AgentSpec) -> Site:
        """Open the site of an agent whose references are resolved."""
        async with AsyncExitStack() as parts:
            site = await (self.open_bare(agent, parts) if self.spec.world is None else self.open_boxed(agent, parts))
            site.close_rest = parts.pop_all().aclose
        if agent.launched:
            from holdfast.execute.boxed_worlds import make_program_search
            from holdfast.world.program_search import ProgramStamps

            site.programs = ProgramStamps(agent, make_program_search(self.spec, agent, self.root, self.environ))
        return site

    # -- directly on this machine --------------------------------------------------------------------
    async def open_bare(self, agent: AgentSpec, parts: AsyncExitStack) -> Site:
        if agent.gateway:
            return await self.open_behind_gateway(agent, parts)
        planes = None
        if needs_planes(self.spec, self.models):
            planes = self.make_planes(agent, web=needs_web_plane(self.spec))
            parts.push_async_callback(planes.close)
        machine = Machine(self.root, {**self.environ, **agent.env}, planes)
        parts.push_async_callback(machine.close)
        site = await self.open_on_machine(agent, machine)
        site.worlds = BareWorlds(machine, self.find_recording_spec())
        return site

    def find_recording_spec(self) -> Spec | None:
        """Return the spec if one of its checks records something without a world; None for most specs."""
        from holdfast import plugins
        from holdfast.protocols.check import GatheringCheck

        checks = (plugins.find("checks", rule.check) for rule in self.spec.invariants)
        return self.spec if any(check is not None and issubclass(check, GatheringCheck) for check in checks) else None

    async def open_on_machine(self, agent: AgentSpec, machine: Machine) -> Site:
        """Open the agent of a section on this machine."""
        if agent.is_python:
            return await (self.open_inline(agent) if agent.isolation == "inline" else self.open_python(agent, machine))
        if agent.type == "command":
            from holdfast.agents.command.agent import CommandAgent

            command = CommandAgent.open_on_machine(agent, self.root, self.environ)
            return Site(self.spec, command, _limit_slots(self.slots, command.limit), _make_start_notes(command.notes))
        if agent.launched:
            from holdfast.agents.http.launched import LaunchedHttpAgent

            server = await LaunchedHttpAgent.open_on_machine(agent, self.root, self.slots, machine.place)
            return Site(self.spec, server, _limit_slots(self.slots, server.limit), _make_start_notes(server.notes))
        from holdfast.agents.http.agent import HttpAgent

        return Site(self.spec, await HttpAgent.open(agent, root=self.root, limit=self.slots), self.slots)

    async def open_inline(self, agent: AgentSpec) -> Site:
        from holdfast.agents.python.inline import InlineAgent

        inline = await InlineAgent.open(agent, self.root, list_scenarios(self.spec))
        targets = await self.check_targets(inline, inline.installed.tools, inline.installed.llm)
        return Site(self.spec, inline, 1, _make_start_notes([_INLINE]), targets)

    async def open_python(self, agent: AgentSpec, machine: Machine) -> Site:
        from holdfast.agents.python.hosts import MachineHosts

        planes = machine.site_planes
        python = await MachineHosts.open(agent, self.root, list_scenarios(self.spec), machine.environ, planes)
        ready, notes = python.ready, _make_start_notes([python.cost_note] if python.cost_note else ())
        if planes is not None:
            planes.tools = frozenset(ready.tools)
        targets = await self.check_targets(python, ready.tools, ready.llm, on_wire=planes is not None)
        return Site(self.spec, python, self.slots, notes, targets)

    async def check_targets(
        self, agent: Agent, tools: Sequence[str], llm: Sequence[str], *, on_wire: bool = False
    ) -> tuple[str, ...]:
        """Return the targets that faults can hit in the agent; close the agent if a fault names another one."""
        try:
            check_targets(self.spec, tools, llm, on_wire=on_wire)
        except BaseException:
            await agent.close()
            raise
        return (*tools, *llm)

    async def open_behind_gateway(self, agent: AgentSpec, parts: AsyncExitStack) -> Site:
        """Open a running HTTP agent that was started with a gateway's variables; it runs one trial at a time."""
        from holdfast.agents.http.agent import HttpAgent
        from holdfast.planes.handover import take_socket

        handed = take_socket(get_own_folder(self.spec.file))
        parts.callback(handed.give_back)
        planes = self.make_planes(agent, web=needs_web_plane(self.spec), authority=handed.handed.authority)
        parts.push_async_callback(planes.close)
        address = await planes.open_address(sock=handed.listening, token=handed.handed.token)
        parts.push_async_callback(address.close)
        http = await HttpAgent.open(agent, limit=1, root=self.root)
        machine = Machine(self.root, {})
        machine.planes = address
        return Site(self.spec, http, 1, worlds=BareWorlds(machine, self.find_recording_spec()))

    def make_planes(self, agent: AgentSpec, *, web: bool, authority: bytes | None = None) -> SitePlanes:
        from holdfast.execute.plane_needs import build_plane_settings
        from holdfast.planes.site_planes import SitePlanes

        return SitePlanes(
            build_plane_settings(self.spec, agent, self.root, self.environ, self.models, web=web), authority
        )

    # -- in sandboxes -------------------------------------------------------------------------------
    async def open_boxed(self, written: AgentSpec, parts: AsyncExitStack) -> Site:
        from holdfast.execute.boxed_worlds import (
            BoxedWorlds,
            find_backend,
            make_program_search,
            make_sandbox_note,
            open_worlds,
        )
        from holdfast.world.agent_mounts import mount

        assert self.spec.world is not None
        host = not find_backend(self.world.backend).traits.image
        search = make_program_search(self.spec, written, self.root, self.environ) if host else None
        mounted = mount(written, self.root, search)
        planes = self.make_planes(mounted.agent, web=True)
        parts.push_async_callback(planes.close)
        shared = await open_worlds(self.spec, mounted, self.root, self.environ, self.world, planes)
        parts.push_async_callback(shared.close)
        slots = _limit_slots(self.slots, self.spec.world.resources.concurrency_limit)
        mounts = [
            RunNote("mounts", text) for text in (*mounted.mounts.list_notes(self.root), *mounted.programs.list_notes())
        ]
        notes = (make_sandbox_note(shared.backend), *mounts)
        return Site(
            self.spec, self.make_world_agent(mounted.agent), slots, notes, worlds=BoxedWorlds(shared, self.spec)
        )

    def make_world_agent(self, agent: AgentSpec) -> Agent:
        """Make the agent of a section, to be started in the world of each trial."""
        if agent.is_python:
            from holdfast.agents.python.hosts import WorldHosts

            return WorldHosts(agent, list_scenarios(self.spec))
        if agent.type == "http":
            from holdfast.agents.http.launched import LaunchedHttpAgent

            return LaunchedHttpAgent(agent, self.root)
        from holdfast.agents.command.agent import CommandAgent

        return CommandAgent(agent)


def _limit_slots(slots: int, limit: int | None) -> int:
    return slots if limit is None else min(slots, limit)


def _make_start_notes(texts: Iterable[str]) -> tuple[RunNote, ...]:
    return tuple([RunNote("agent-start", text) for text in texts])


RUNNING_SERVER_SLOTS = 10
"""Parallel trials of an agent that is already running, unless the user says otherwise."""


def count_slots(spec: Spec, requested: int | None) -> int:
    """Return the number of parallel trials: as requested, else `advanced.concurrency`, else by the kind of agent."""
    agent = spec.agent
    if agent.runs_alone:
        return 1
    requested = requested if requested is not None else spec.concurrency
    if requested is not None:
        assert requested >= 1, f"{requested} trials in parallel: every caller rejects that"
        return requested
    return RUNNING_SERVER_SLOTS if agent.type == "http" and not agent.launched else os.cpu_count() or 1
