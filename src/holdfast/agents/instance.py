"""One started copy of an HTTP agent: its process, what it talks through, and the client that asks it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from holdfast.agents.http import HttpAgent
from holdfast.agents.launcher import Launcher
from holdfast.agents.placeholders import with_mcp_config, with_port
from holdfast.agents.readiness import await_ready
from holdfast.agents.startable import BEGIN, argv_of, start
from holdfast.errors import HarnessError
from holdfast.model.observation import Answer, EndingKind
from holdfast.model.spec import AgentSpec, Task
from holdfast.processes.pipes import Pipes, Tail
from holdfast.processes.program import Program, how_it_ended
from holdfast.protocols import TrialContext

if TYPE_CHECKING:
    from holdfast.planes.trial_address import TrialAddress

NOTICE_S = 0.5
"""How long a lost connection may be ahead of the news that the process has ended."""
WORN: frozenset[EndingKind] = frozenset(("timeout", "crashed", "closed"))
"""Endings after which an instance is not used again."""


OpenAddress: TypeAlias = "Callable[[], Awaitable[TrialAddress]]"
"""Opens an address for one more instance."""


@dataclass(frozen=True)
class InstanceSettings:
    """All that the instances of one agent have in common."""

    agent: AgentSpec
    root: Path
    environ: Mapping[str, str]
    launcher: Launcher
    open_address: OpenAddress


class Instance:
    """A started copy that was ready. `end` it after use."""

    def __init__(self, agent: AgentSpec, address: TrialAddress, program: Program, pipes: Pipes, printed: Tail) -> None:
        self._agent = agent
        self._address = address
        self._program = program
        self._pipes = pipes
        self._printed = printed
        self._http: HttpAgent
        self._parts: AsyncExitStack
        self.worn = False
        """Its last trial left it in a state that the next one must not meet."""

    @classmethod
    async def start(cls, plan: InstanceSettings, port: int) -> Instance:
        """Starts a copy on this port and waits until it is ready; AgentUnavailable if it does not get there."""
        agent = with_port(plan.agent, port)
        async with AsyncExitStack() as parts:
            address = await plan.open_address()
            parts.push_async_callback(address.close)
            env = {**BEGIN, **plan.environ, **agent.env, "PORT": str(port), **address.environ}
            printed = Tail()
            pipes = Pipes(b"", printed, printed)
            parts.callback(pipes.close)
            argv = argv_of(with_mcp_config(agent, env), plan.root, env)
            program = await start(plan.launcher, argv, env, plan.root, pipes.stdio)
            address.process_tree.first = program.keeper
            pipes.give()
            await parts.enter_async_context(program)
            self = cls(agent, address, program, pipes, printed)
            await await_ready(agent, program, pipes, printed)
            self._http = await HttpAgent.open(agent, limit=1, root=plan.root, fate=self._fate)
            parts.push_async_callback(self._http.close)
            self._parts = parts.pop_all()
        return self

    @property
    def alive(self) -> bool:
        return not self._program.ended

    async def perform(self, task: Task, context: TrialContext) -> Answer:
        """One trial: reset, if the spec names one, then asked turn after turn."""
        if self._agent.has_reset:
            await self._http.reset(context.trial)
        self._pipes.drain()
        self._printed.restart()
        with self._address.carry(context):
            answer = await self._http.run(task, context)
        self._pipes.drain()
        if self._program.lost:
            raise HarnessError("the launch host died, and the agent with it")
        self.worn = any(turn.ending in WORN for turn in answer.turns)
        notes = (*answer.notes, *self._printed.notes)
        return Answer(answer.turns, output=self._printed.text, notes=notes)

    async def end(self, grace_s: float | None = None) -> tuple[str, ...]:
        """Ends it with all that belongs to it; what the reader should know of that."""
        if grace_s is not None:
            await self._program.end(grace_s)
        await self._parts.aclose()
        return self._program.notes

    async def _fate(self) -> tuple[EndingKind, str]:
        """What became of an agent that gave no answer or no connection: it was ready before."""
        if await self._program.within(NOTICE_S):
            return "crashed", f"its process {how_it_ended(self._program.status)}{_last(self._printed)}"
        return "closed", "its process runs, but takes no connections any more"


def _last(printed: Tail) -> str:
    return f": {printed.last_line[:200]}" if printed.last_line else ""
