"""A command agent inside a sandbox: the same turns in another place."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

from holdfast.agents.answer_file import Left, read_left
from holdfast.agents.command_answer import Print, from_file
from holdfast.agents.command_turns import CommandTurns
from holdfast.agents.housed.placing import MountedAgent
from holdfast.agents.prompt_channel import Lend
from holdfast.agents.startable import BEGIN, SHELL
from holdfast.errors import AgentUnavailable, HarnessError, OutsideError
from holdfast.model.observation import Answer
from holdfast.model.spec import AgentSpec, Task
from holdfast.model.trial import Trial
from holdfast.processes.pipes import Head
from holdfast.protocols import House, Sandbox, Started, Stdio, TrialContext


class HousedCommand:
    """A new process for every turn, in the workspace of its trial's sandbox."""

    def __init__(self, seen: MountedAgent) -> None:
        self._seen = seen

    async def run(self, task: Task, context: TrialContext) -> Answer:
        house = context.house
        if house is None:
            raise HarnessError("this agent runs in a sandbox, and there is none")
        env = {**BEGIN, **house.environ}
        agent = self._seen.within(house.sandbox)
        return await CommandTurns(agent).converse(task, context, env, SandboxPlace(agent, house))

    async def reset(self, trial: Trial) -> None:
        """Nothing to reset: its world is new."""

    async def close(self) -> None:
        """Its world closes what it has started."""


class SandboxPlace:
    """The workspace of a sandbox."""

    def __init__(self, agent: AgentSpec, house: House) -> None:
        self._house = house
        self._name = agent.answer_file
        self._before: tuple[int, int, int] | None = None
        self.lend: Lend | None = self._lend
        self.heard: Callable[[bytes], None] | None = house.heard

    @asynccontextmanager
    async def start(
        self, agent: AgentSpec, env: Mapping[str, str], stdio: tuple[int, int, int]
    ) -> AsyncIterator[Started]:
        program = await start_inside(self._house.sandbox, argv_inside(agent), env, stdio)
        try:
            yield program
        finally:
            await program.end()

    def clear(self) -> None:
        """The agent keeps its files; one that is as it was before the turn is no answer to it."""
        self._before = self._state()

    def left(self, said: Head, limit: int) -> Print:
        if self._name is None:
            return Print(said.data, said.cut)
        if self._before is not None and self._state() == self._before:
            return from_file(self._name, Left(absent=True))
        return from_file(self._name, _read(self._house.sandbox, self._name, limit))

    def _state(self) -> tuple[int, int, int] | None:
        """Which file lies there, and when it was written; None if none does."""
        try:
            path = None if self._name is None else self._house.sandbox.find(self._name)
            about = None if path is None else path.lstat()
        except (OutsideError, OSError):
            return None
        return None if about is None else (about.st_ino, about.st_mtime_ns, about.st_size)

    @contextmanager
    def _lend(self, content: str) -> Iterator[str]:
        yield self._house.lend("prompt.txt", content.encode())


def argv_inside(agent: AgentSpec) -> list[str]:
    """The program and its arguments as written; whether it is there, only the sandbox can tell."""
    return [SHELL, "-c", agent.command] if agent.command is not None else [agent.binary or "", *agent.args]


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
    return Left(absent=True) if path is None else read_left(path, name, limit)
