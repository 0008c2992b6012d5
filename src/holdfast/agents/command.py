"""The command agent: a program that is run for every turn and leaves its answer on stdout or in a file."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agents.command_turns import CommandTurns
from holdfast.model.observation import Answer
from holdfast.model.spec import AgentSpec
from holdfast.model.task import Task
from holdfast.processes.startable import BEGIN, argv_of, variables
from holdfast.protocols.world import World

if TYPE_CHECKING:
    from holdfast.agents.http_reset import Reset


class CommandAgent:
    """A new process for every trial and turn, in the spec's folder or in the workspace of its sandbox.

    Several turns: the command is run once a turn, with HOLDFAST_TURN=1, 2, … and the same HOLDFAST_TRIAL, until one
    ends badly. What it remembers between turns it must keep itself, in a file named by HOLDFAST_TRIAL for example.
    """

    def __init__(self, agent: AgentSpec) -> None:
        self._agent = agent
        self._turns = CommandTurns(agent)
        self._ran = False
        """The command has run once: from then on it is the agent's doing if it does not."""
        self._reset: Reset | None = None
        self._slot: AbstractAsyncContextManager[None] = nullcontext()
        self.limit: int | None = None
        """How many trials can run at once; None: any number."""
        self.notes: tuple[str, ...] = ()
        """What the reader should know of how it is run."""

    @classmethod
    def on_machine(cls, agent: AgentSpec, root: Path, environ: Mapping[str, str]) -> CommandAgent:
        """One that runs in the spec's own folder, which trials share: where it leaves an answer file, they take turns.

        AgentUnavailable if there is no such program.
        """
        argv_of(agent, root, {**environ, **agent.env})
        self = cls(agent)
        self._reset = _reset_of(agent, root)
        if agent.answer_file:
            self._slot, self.limit = asyncio.Lock(), 1
            self.notes = (f"all trials leave their answer in {agent.answer_file}, so they run one at a time",)
        return self

    async def run(self, task: Task, world: World) -> Answer:
        """Runs the command turn after turn; AgentUnavailable if it cannot be started at all."""
        async with self._slot:
            if self._reset is not None:
                await self._reset()
            place = await world.place()
            agent = place.mounted(self._agent)
            turns = self._turns if agent is self._agent else CommandTurns(agent)
            turns.ran = self._ran
            with place.serving(world.context):
                env = {**BEGIN, **place.environ, **variables(world.trial)}
                answer = await turns.converse(task, world, place, env)
            self._ran = turns.ran
            return answer

    async def close(self) -> None:
        if self._reset is not None:
            await self._reset.close()


def _reset_of(agent: AgentSpec, root: Path) -> Reset | None:
    """What the spec names for a reset; an HTTP client is loaded only where there is one."""
    if not agent.has_reset:
        return None
    from holdfast.agents.http_reset import reset_of

    return reset_of(agent, None, root, 1)
