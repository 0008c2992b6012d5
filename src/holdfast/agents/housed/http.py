"""An HTTP agent inside a sandbox: started in its trial's world, and asked through a port of ours."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from math import inf
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from holdfast.agents.housed.command import argv_inside, start_inside
from holdfast.agents.housed.placing import MountedAgent
from holdfast.agents.http import HttpAgent
from holdfast.agents.placeholders import PORT, with_mcp_config, with_port
from holdfast.agents.ports import Ports
from holdfast.agents.readiness import address_of, await_ready
from holdfast.agents.startable import BEGIN
from holdfast.agents.time_limit import left_s, reset_in_time
from holdfast.errors import HarnessError
from holdfast.model.observation import Answer, EndingKind, Turn
from holdfast.model.spec import AgentSpec, Task
from holdfast.model.trial import Trial
from holdfast.planes.port_forward import PortForward
from holdfast.processes.pipes import Pipes, Tail
from holdfast.processes.program import how_it_ended
from holdfast.protocols import House, Sandbox, Started, TrialContext

NOTICE_S = 0.5
"""How long a lost connection may be ahead of the news that the process has ended."""


class HousedHttp:
    """A new instance for every trial, in its sandbox."""

    def __init__(self, seen: MountedAgent, root: Path) -> None:
        self._seen = seen
        self._agent = seen.agent
        self._root = root
        self._ports = Ports()

    async def run(self, task: Task, context: TrialContext) -> Answer:
        if context.house is None:
            raise HarnessError("this agent runs in a sandbox, and there is none")
        async with AsyncExitStack() as parts:
            printed = Tail()
            pipes = Pipes(b"", printed, printed)
            parts.callback(pipes.close)
            port = self._ports.take() if PORT in self._agent.endpoint else address_of(self._agent.endpoint)[1]
            inside = with_port(self._seen.within(context.house.sandbox), port)
            program = await _start(inside, context.house, port, pipes)
            parts.push_async_callback(program.end)
            reached = self._reached(inside, port, context.house.sandbox, program, pipes, printed, parts)
            http = await _within(left_s(context), reached)
            printed.watch = context.house.heard
            if http is not None and inside.has_reset:
                await reset_in_time(http, context)
            answer = _never_asked(task) if http is None else await http.run(task, context)
            pipes.drain()
        if program.lost:
            raise HarnessError("our side lost sight of the agent's process")
        return Answer(answer.turns, output=printed.text, notes=(*answer.notes, *printed.notes, *program.notes))

    async def reset(self, trial: Trial) -> None:
        """What the spec names for a reset is called by `run`, on the instance that is asked."""

    async def close(self) -> None:
        """Its world closes what it has started."""

    async def _reached(
        self,
        inside: AgentSpec,
        port: int,
        sandbox: Sandbox,
        program: Started,
        pipes: Pipes,
        printed: Tail,
        parts: AsyncExitStack,
    ) -> HttpAgent:
        """The client that asks it, when it is ready."""
        forward = await PortForward.open(sandbox, port)
        parts.push_async_callback(forward.close)
        outside = _seen_from_outside(inside, port, forward.port)

        async def accepts(host: str, wanted: int) -> bool:
            return await forward.leads(port if wanted == forward.port else wanted)

        async def fate() -> tuple[EndingKind, str]:
            if await program.within(NOTICE_S):
                return "crashed", f"its process {how_it_ended(program.status)}"
            return "closed", "its process runs, but takes no connections any more"

        await await_ready(outside, program, pipes, printed, accepts)
        http = await HttpAgent.open(outside, limit=1, root=self._root, fate=fate)
        parts.push_async_callback(http.close)
        return http


async def _within(limit_s: float, reached: Coroutine[Any, Any, HttpAgent]) -> HttpAgent | None:
    """None if the trial's time is over before it is ready."""
    try:
        async with asyncio.timeout(None if limit_s == inf else limit_s) as limit:
            return await reached
    except TimeoutError:
        if not limit.expired():
            raise
        return None


def _never_asked(task: Task) -> Answer:
    return Answer((Turn(task.turns[0], None, 0.0, "timeout", "it was not ready in time"),))


async def _start(agent: AgentSpec, house: House, port: int, pipes: Pipes) -> Started:
    env = {**BEGIN, **house.environ, "PORT": str(port)}
    called = with_mcp_config(agent, env)
    program = await start_inside(house.sandbox, argv_inside(called), env, pipes.stdio)
    pipes.give()
    return program


def _seen_from_outside(agent: AgentSpec, port: int, ours: int) -> AgentSpec:
    """The section with our port where the agent's own stands."""

    def moved(url: str) -> str:
        return re.sub(rf"(//[^/]*):{port}\b", rf"\1:{ours}", url)

    def maybe(url: str | None) -> str | None:
        return None if url is None else str(ours) if url == str(port) else moved(url)

    endpoint = moved(agent.endpoint)
    if endpoint == agent.endpoint:  # the port was left out
        endpoint = re.sub(r"^(https?://[^/]+)", rf"\1:{ours}", endpoint)
    return replace(agent, endpoint=endpoint, ready=maybe(agent.ready), reset_endpoint=maybe(agent.reset_endpoint))
