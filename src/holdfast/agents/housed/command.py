"""A command agent inside a sandbox: the same rounds on other ground."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

from holdfast.agents.answer_file import Left
from holdfast.agents.command_answer import Print, from_file
from holdfast.agents.housed.placing import Placed
from holdfast.agents.prompting import Lend
from holdfast.agents.rounds import Rounds
from holdfast.agents.startable import BEGIN, SHELL
from holdfast.errors import AgentUnavailable, HarnessError, OutsideError
from holdfast.model.observation import Answer
from holdfast.model.spec import AgentSpec, Task
from holdfast.model.trial import Trial
from holdfast.processes.piping import Head
from holdfast.protocols import House, Sandbox, Started, Stdio, Trip


class HousedCommand:
    """A new process for every turn, in the workspace of its trial's sandbox."""

    def __init__(self, seen: Placed) -> None:
        self._seen = seen

    async def run(self, task: Task, trip: Trip) -> Answer:
        house = trip.house
        if house is None:
            raise HarnessError("this agent runs in a sandbox, and there is none")
        env = {**BEGIN, **house.environ}
        agent = self._seen.within(house.sandbox)
        return await Rounds(agent).converse(task, trip, env, Inside(agent, house))

    async def reset(self, trial: Trial) -> None:
        """Nothing to reset: its world is new."""

    async def close(self) -> None:
        """Its world closes what it has started."""


class Inside:
    """The workspace of a sandbox."""

    def __init__(self, agent: AgentSpec, house: House) -> None:
        self._house = house
        self._name = agent.answer_file
        self.lend: Lend | None = self._lend

    @asynccontextmanager
    async def start(
        self, agent: AgentSpec, env: Mapping[str, str], stdio: tuple[int, int, int]
    ) -> AsyncIterator[Started]:
        argv = [SHELL, "-c", agent.command] if agent.command is not None else [agent.binary or "", *agent.args]
        program = await start_inside(self._house.sandbox, argv, env, stdio)
        try:
            yield program
        finally:
            await program.end()

    def clear(self) -> None:
        """A turn's answer may be left from the turn before: then it is this turn's, too. The agent keeps its files."""

    def left(self, said: Head, limit: int) -> Print:
        if self._name is None:
            return Print(said.data, said.cut)
        return from_file(self._name, _read(self._house.sandbox, self._name, limit))

    @contextmanager
    def _lend(self, content: str) -> Iterator[str]:
        yield self._house.lend("prompt.txt", content.encode())


async def start_inside(
    sandbox: Sandbox, argv: list[str], env: Mapping[str, str], stdio: tuple[int, int, int]
) -> Started:
    """Starts a program in the sandbox; AgentUnavailable if it cannot be executed."""
    try:
        return await sandbox.start(argv, env, Stdio(*stdio))
    except OSError as refused:
        hint = "inside the sandbox there are the system's programs, /agent and the workspace"
        raise AgentUnavailable(f"cannot start {argv[0]}: {refused.strerror}", hint=hint, config=True) from refused


def _read(sandbox: Sandbox, name: str, limit: int) -> Left:
    """A file that the agent left in its workspace."""
    try:
        path = sandbox.find(name)
    except OutsideError as refused:
        return Left(refused=str(refused))
    if path is None:
        return Left(absent=True)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return Left(refused=f"{name} is not a regular file")
        data = file.read(limit + 1)
    return Left(data[:limit], cut=len(data) > limit)
