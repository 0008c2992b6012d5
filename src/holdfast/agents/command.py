"""The command agent: a program that is run for every turn and leaves its answer on stdout or in a file."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agents.answer_file import AnswerFile
from holdfast.agents.command_answer import TEXT_KEPT, AnswerReader, Print
from holdfast.agents.environment import variables
from holdfast.agents.http_path import find_at
from holdfast.agents.instance import Moor
from holdfast.agents.launcher import Launcher
from holdfast.agents.placeholders import MCP_CONFIG
from holdfast.agents.prompting import Given, Prompting
from holdfast.agents.startable import BEGIN, NOT_RUN, argv_of, not_run, start
from holdfast.errors import HarnessError
from holdfast.model.observation import Answer, Turn
from holdfast.model.spec import AgentSpec, Task
from holdfast.model.trial import Trial
from holdfast.processes.piping import Head, Pipes, Tail
from holdfast.processes.program import Program
from holdfast.protocols import Trip

if TYPE_CHECKING:
    from holdfast.agents.http_reset import Reset


class CommandAgent:
    """A new process for every trial and turn, in the spec's folder.

    Several turns: the command is run once a turn, with HOLDFAST_TURN=1, 2, … and the same HOLDFAST_TRIAL, until one
    ends badly. What it remembers between turns it must keep itself, in a file named by HOLDFAST_TRIAL for example.
    Where an answer file is named, trials take turns: they share the folder.
    """

    def __init__(self, agent: AgentSpec, root: Path, environ: Mapping[str, str], moor: Moor) -> None:
        self._agent = agent
        self._root = root
        self._environ = {**BEGIN, **environ, **agent.env}
        self._moor = moor
        self._prompting = Prompting(agent)
        path = agent.response_path
        self._reader = AnswerReader(find_at(path), path) if path else AnswerReader()
        self._file = AnswerFile(root, agent.answer_file) if agent.answer_file else None
        self.limit: int | None = 1 if self._file else None
        """How many trials can run at once; None: any number."""
        self._slot: AbstractAsyncContextManager[None] = asyncio.Lock() if self._file else nullcontext()
        self._reset = _reset_of(agent, root)
        self._ran = False
        """The command has run once: from then on it is the agent's doing if it does not."""
        self._launcher = Launcher()
        argv_of(agent, root, self._environ)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know of how it is run."""
        if self._file is None:
            return ()
        return (f"all trials leave their answer in {self._file.name}, so they run one at a time",)

    async def run(self, task: Task, trip: Trip) -> Answer:
        """Runs the command turn after turn; AgentUnavailable if it cannot be started at all."""
        async with self._slot:
            if self._reset is not None:
                await self._reset()
            berth = await self._moor()
            try:
                with berth.carry(trip):
                    return await self._converse(task, trip, {**self._environ, **variables(trip.trial), **berth.environ})
            finally:
                await berth.close()

    async def reset(self, trial: Trial) -> None:
        """What the spec names for a reset is called by `run`, before the command."""

    async def close(self) -> None:
        await self._launcher.close()
        if self._reset is not None:
            await self._reset.close()

    async def _converse(self, task: Task, trip: Trip, env: Mapping[str, str]) -> Answer:
        printed = Tail()
        notes: list[str] = []
        turns: list[Turn] = []
        for n, text in enumerate(task.turns, 1):
            asked = trip.ask(text)
            with self._prompting.give(asked, env.get(MCP_CONFIG, "")) as given:
                at = {**env, "HOLDFAST_TURN": str(n), **given.env}
                turns.append(await self._turn(asked, given, at, printed, notes))
            if turns[-1].cut:
                notes.append(f"the answer was cut at {TEXT_KEPT // 1_000_000} MB")
            if turns[-1].ending != "answered":
                break
        return Answer(tuple(turns), output=printed.text, notes=(*dict.fromkeys(notes), *printed.notes))

    async def _turn(self, asked: str, given: Given, env: Mapping[str, str], printed: Tail, notes: list[str]) -> Turn:
        if self._file is not None:
            self._file.clear()
        said = Head(self._reader.limit)
        timeout_ms = self._agent.timeout_ms
        with closing(Pipes(given.stdin, printed if self._file else said, printed)) as pipes:
            argv = argv_of(given.agent, self._root, env)
            async with await start(self._launcher, argv, env, self._root, pipes.stdio) as program:
                pipes.give()
                in_time = await program.within(timeout_ms / 1000) and program.took_ms <= timeout_ms
                pipes.drain()
                said.stop()
            pipes.drain()
        notes.extend(program.notes)
        if program.lost:
            raise HarnessError("the launch host died while the command ran")
        if not in_time:
            return self._reader.overdue(asked, self._left(said), timeout_ms)
        return self._ended(asked, self._left(said), program, printed.last_line)

    def _left(self, said: Head) -> Print:
        """What is taken for the answer, now that no process of the command is left."""
        if self._file is None:
            return Print(said.data, said.cut)
        left = self._file.read(self._reader.limit)
        missing = f"it wrote no {self._file.name}" if left.absent else f"{self._file.name} is empty"
        return Print(left.data, left.cut, missing, left.refused)

    def _ended(self, asked: str, left: Print, program: Program, last_line: str) -> Turn:
        by_shell = self._agent.command is not None and program.status in NOT_RUN
        if by_shell and not self._ran and not left.data:
            raise not_run(self._agent, last_line)
        self._ran = True
        return self._reader.ended(asked, left, program.status, program.took_ms, last_line)


def _reset_of(agent: AgentSpec, root: Path) -> Reset | None:
    """What the spec names for a reset; an HTTP client is loaded only where there is one."""
    if not agent.has_reset:
        return None
    from holdfast.agents.http_reset import reset_of

    return reset_of(agent, None, root, 1)
