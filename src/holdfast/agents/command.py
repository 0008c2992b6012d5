"""The command agent: a program that is run for every turn and leaves its answer on stdout or in a file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agents.answer_file import AnswerFile
from holdfast.agents.command_answer import Print, from_file
from holdfast.agents.command_turns import CommandTurns
from holdfast.agents.environment import variables
from holdfast.agents.instance import OpenAddress
from holdfast.agents.launcher import Launcher
from holdfast.agents.prompt_channel import Lend
from holdfast.agents.startable import BEGIN, argv_of, start
from holdfast.model.observation import Answer
from holdfast.model.spec import AgentSpec, Task
from holdfast.model.trial import Trial
from holdfast.processes.pipes import Head
from holdfast.processes.program import Program
from holdfast.protocols import TrialContext

if TYPE_CHECKING:
    from holdfast.agents.http_reset import Reset
    from holdfast.planes.process_tree import ProcessTree


class CommandAgent:
    """A new process for every trial and turn, in the spec's folder.

    Several turns: the command is run once a turn, with HOLDFAST_TURN=1, 2, … and the same HOLDFAST_TRIAL, until one
    ends badly. What it remembers between turns it must keep itself, in a file named by HOLDFAST_TRIAL for example.
    Where an answer file is named, trials take turns: they share the folder.
    """

    def __init__(self, agent: AgentSpec, root: Path, environ: Mapping[str, str], open_address: OpenAddress) -> None:
        self._environ = {**BEGIN, **environ, **agent.env}
        self._moor = open_address
        self._rounds = CommandTurns(agent)
        self._launcher = Launcher()
        self._root = root
        self._answer_file = agent.answer_file
        self.limit: int | None = 1 if self._answer_file else None
        """How many trials can run at once; None: any number."""
        self._slot: AbstractAsyncContextManager[None] = asyncio.Lock() if self._answer_file else nullcontext()
        self._reset = _reset_of(agent, root)
        argv_of(agent, root, self._environ)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know of how it is run."""
        if not self._answer_file:
            return ()
        return (f"all trials leave their answer in {self._answer_file}, so they run one at a time",)

    async def run(self, task: Task, context: TrialContext) -> Answer:
        """Runs the command turn after turn; AgentUnavailable if it cannot be started at all."""
        async with self._slot:
            if self._reset is not None:
                await self._reset()
            address = await self._moor()
            try:
                with address.carry(context):
                    env = {**self._environ, **variables(context.trial), **address.environ}
                    here = MachinePlace(self._launcher, self._root, self._answer_file, address.process_tree)
                    return await self._rounds.converse(task, context, env, here)
            finally:
                await address.close()

    async def reset(self, trial: Trial) -> None:
        """What the spec names for a reset is called by `run`, before the command."""

    async def close(self) -> None:
        await self._launcher.close()
        if self._reset is not None:
            await self._reset.close()


class MachinePlace:
    """This machine as it is: the spec's folder, and the launch host."""

    lend: Lend | None = None
    heard: Callable[[bytes], None] | None = None

    def __init__(self, launcher: Launcher, root: Path, answer_file: str | None, process_tree: ProcessTree) -> None:
        self._launcher = launcher
        self._root = root
        self._file = AnswerFile(root, answer_file) if answer_file else None
        self._crew = process_tree

    @asynccontextmanager
    async def start(
        self, agent: AgentSpec, env: Mapping[str, str], stdio: tuple[int, int, int]
    ) -> AsyncIterator[Program]:
        argv = argv_of(agent, self._root, env)
        async with await start(self._launcher, argv, env, self._root, stdio) as program:
            self._crew.first = program.keeper
            yield program

    def clear(self) -> None:
        if self._file is not None:
            self._file.clear()

    def left(self, said: Head, limit: int) -> Print:
        if self._file is None:
            return Print(said.data, said.cut)
        return from_file(self._file.name, self._file.read(limit))


def _reset_of(agent: AgentSpec, root: Path) -> Reset | None:
    """What the spec names for a reset; an HTTP client is loaded only where there is one."""
    if not agent.has_reset:
        return None
    from holdfast.agents.http_reset import reset_of

    return reset_of(agent, None, root, 1)
