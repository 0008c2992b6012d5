"""The processes of a Python agent.

On this machine there is one to fork trials from, or one per trial or slot. In sandboxes, each trial has its own.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.agents.conversation import compute_turn_limit_ms, time_left_s
from holdfast.agents.python.host_protocol import HostSetup, Ready
from holdfast.agents.python.hosted_trial import HostedTrial
from holdfast.agents.python.python_host import HOST_DIED, OnStarted, PythonHost, import_agent, make_import_error
from holdfast.errors import AgentUnavailable, HarnessError
from holdfast.model.observation import Answer
from holdfast.model.scenario import Scenario
from holdfast.model.spec import AgentSpec
from holdfast.model.task import Task
from holdfast.processes.leftovers import GRACE_S
from holdfast.processes.program import cancel_and_wait
from holdfast.processes.startable import BEGIN
from holdfast.protocols.sandbox import Started, Stdio
from holdfast.protocols.trial import TrialContext
from holdfast.protocols.world import World

if TYPE_CHECKING:
    from holdfast.planes.shared_address import SharedAddress
    from holdfast.planes.site_planes import SitePlanes
    from holdfast.planes.trial_address import TrialAddress


class MachineHosts:
    """A Python agent in separate processes, which may crash or hang; a reset function runs there.

    Fresh: trials are forked from a process that has imported the agent. Worker: a process is kept for the next trial.
    """

    def __init__(self, setup: HostSetup, environ: Mapping[str, str], site_planes: SitePlanes | None) -> None:
        self._setup = setup
        self._environ = environ
        self._site_planes = site_planes
        self._shared_address: SharedAddress | None = None
        self._addresses: dict[PythonHost, TrialAddress] = {}
        self._zygote: PythonHost | None = None
        self._idle: list[PythonHost] = []
        self._keep = setup.agent.isolation == "worker"
        self._restart = asyncio.Lock()
        self._suspects: set[str] = set()
        """Trials that ran when a host died: each is repeated in its own host, which shows which of them caused it."""
        self.ready: Ready

    @classmethod
    async def open(
        cls,
        agent: AgentSpec,
        root: Path,
        scenarios: tuple[Scenario, ...],
        environ: Mapping[str, str],
        site_planes: SitePlanes | None = None,
    ) -> MachineHosts:
        """Import the agent in a separate process; raise AgentUnavailable if it cannot."""
        # Only the forking thread survives in a child, and locks that the others held stay locked there forever. So an
        # agent whose import starts threads is not forked.
        place = agent.isolation == "worker" or sys.platform != "linux"
        opened = cls(HostSetup(agent, str(root), scenarios, "place" if place else "fork"), environ, site_planes)
        try:
            first = await opened._start()
            opened.ready = first.ready
            if place:
                opened._idle.append(first)
            elif first.ready.threads > 1:
                await opened._end(first)
                opened._setup = replace(opened._setup, mode="place")
                opened._idle.append(await opened._start())
            else:
                opened._zygote = first
        except BaseException:
            await opened.close()
            raise
        return opened

    @property
    def cost_note(self) -> str:
        """A note on the cost of fresh processes if forking is unsafe; empty if it is safe."""
        if self._setup.mode == "fork" or self._keep:
            return ""
        ready: Ready = self.ready
        why = f"{ready.threads} threads run after its import" if ready.threads > 1 else "this platform"
        return f"forking is unsafe ({why}): a new interpreter per trial, about {ready.import_ms:.0f} ms each to import"

    async def run(self, task: Task, world: World) -> Answer:
        context = world.context
        alone = context.trial.id in self._suspects
        if alone:
            host = await self._start()
            host.alone = True
        else:
            host = await self._acquire_host()
        try:
            with self._serve(host, context) as begun:
                return await host.perform(context, task, begun)
        except HarnessError as broken:
            # The zygote died, and every trial that ran at that moment may have killed it. Each is repeated in a host of
            # its own: there, the death of the host is the agent's own ending, a crash.
            if broken.code == HOST_DIED:
                self._suspects.add(context.trial.id)
            raise
        finally:
            await self._release_host(host)

    async def close(self) -> None:
        for host in [self._zygote, *self._idle]:
            if host is not None:
                await self._end(host)
        self._zygote, self._idle = None, []
        if self._shared_address is not None:
            await self._shared_address.close()

    @contextmanager
    def _serve(self, host: PythonHost, context: TrialContext) -> Iterator[OnStarted | None]:
        """Serve the trial's calls while this is open: at the shared address, or at its host's own."""
        if host in self._addresses:
            with self._addresses[host].serve_trial(context):
                yield None
        elif self._shared_address is not None:
            with self._shared_address.serve_trial(context) as begun:
                yield begun
        else:
            yield None

    async def _acquire_host(self) -> PythonHost:
        if self._setup.mode == "place":
            return self._idle.pop() if self._idle else await self._start()
        if self._zygote is not None and self._zygote.alive:
            return self._zygote
        # Several trials notice together that the zygote is gone. The first one replaces it; the others find the new
        # one.
        async with self._restart:
            if self._zygote is None or not self._zygote.alive:
                if self._zygote is not None:
                    await self._end(self._zygote)
                self._zygote = await self._start()
        return self._zygote

    async def _start(self) -> PythonHost:
        if self._site_planes is None:
            return await PythonHost.start(self._setup, self._environ)
        if self._setup.mode == "fork":
            self._shared_address = self._shared_address or await self._site_planes.open_shared_address()
            return await PythonHost.start(self._setup, {**self._environ, **self._shared_address.environ})
        address = await self._site_planes.open_address()
        try:
            host = await PythonHost.start(self._setup, {**self._environ, **address.environ})
        except BaseException:
            await address.close()
            raise
        address.process_tree.first = host.process.pid
        self._addresses[host] = address
        return host

    async def _end(self, host: PythonHost) -> None:
        host.close()
        address = self._addresses.pop(host, None)
        if address is not None:
            await address.close()

    async def _release_host(self, host: PythonHost) -> None:
        if self._setup.mode == "fork" and not host.alone:
            return
        if self._keep and host.idle:
            self._idle.append(host)
        else:
            await self._end(host)


_PROGRAM = "from holdfast.agents.python.host import main_in_sandbox; main_in_sandbox()"


class WorldHosts:
    """Imports the agent in the world of each trial and asks it there."""

    def __init__(self, agent: AgentSpec, scenarios: tuple[Scenario, ...]) -> None:
        self._agent = agent
        self._scenarios = scenarios

    async def run(self, task: Task, world: World) -> Answer:
        place = await world.place()
        hosted = HostedTrial(world.context, task)
        hosted.printed.watch = world.on_output
        line, output = hosted.pipes.child_ends
        argv = [sys.executable, "-P", "-c", _PROGRAM]
        env = {"PYTHONHASHSEED": "0", **BEGIN, **place.environ}
        try:
            program = await place.start(argv, env, Stdio(line, output, output))
        except BaseException:
            hosted.pipes.close()
            raise
        try:
            setup = HostSetup(self._agent, place.folder, self._scenarios, "place")
            limit_s = await self._perform(program, hosted, world, setup)
        except AgentUnavailable as gone:
            if gone.code == "agent-import-failed":  # a module that lies next to the spec may not be in the sandbox
                gone.hint = "; ".join(filter(None, (gone.hint, place.own_files)))
            raise
        finally:
            await program.end(0.0)
            hosted.finish(program.status, program.out_of_memory)
            hosted.pipes.drain()
            hosted.pipes.close()
        hosted.notes.extend(program.notes)
        return hosted.build_answer(limit_s)

    async def close(self) -> None:
        """Do nothing: every process ended with its trial."""

    async def _perform(self, program: Started, hosted: HostedTrial, world: World, setup: HostSetup) -> float:
        """Run the trial; return the time limit of the last turn."""
        watching = asyncio.create_task(_watch(program, hosted))
        try:
            if not await _set_up_host(program, hosted, setup, time_left_s(world)):
                hosted.late = not hosted.out_of_memory
                return 0.0
            await hosted.begin()
            limit_s = await hosted.run_turns(lambda: compute_turn_limit_ms(self._agent.timeout_ms, world) / 1000)
            if not hosted.late:
                await hosted.wait(lambda: hosted.exited, GRACE_S)
            return limit_s
        finally:
            await cancel_and_wait(watching)


async def _set_up_host(program: Started, hosted: HostedTrial, setup: HostSetup, limit_s: float) -> bool:
    """Send the program its setup and wait until the agent is imported.

    False if it runs out of time or memory first.
    """
    hosted.pipes.close_child_ends()
    try:
        if await import_agent(setup, hosted.pipes.send, hosted.pipes.receive, limit_s) is not None:
            return True
    except TimeoutError:
        return False
    await program.wait_for_end(GRACE_S)
    if not program.out_of_memory:
        raise make_import_error()
    hosted.finish(program.status, program.out_of_memory)
    return False


async def _watch(program: Started, hosted: HostedTrial) -> None:
    while not await program.wait_for_end(60.0):
        pass
    hosted.finish(program.status, program.out_of_memory)
