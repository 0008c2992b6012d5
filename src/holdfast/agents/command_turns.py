"""Running a command turn after turn, wherever it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, closing
from typing import Protocol

from holdfast.agents.command_answer import TEXT_KEPT, AnswerReader, Print
from holdfast.agents.placeholders import MCP_CONFIG
from holdfast.agents.prompt_channel import GivenPrompt, Lend, PromptChannel
from holdfast.agents.startable import NOT_RUN, not_run
from holdfast.agents.time_limit import patience_ms
from holdfast.errors import HarnessError
from holdfast.model.observation import Answer, Turn
from holdfast.model.spec import AgentSpec, Task
from holdfast.processes.pipes import Head, Pipes, Tail
from holdfast.protocols import Started, TrialContext
from holdfast.reading.json_path import find_at


class CommandPlace(Protocol):
    """Where a command stands: this machine, or a sandbox."""

    lend: Lend | None
    """Writes a prompt's file; None: this machine's own way."""
    heard: Callable[[bytes], None] | None
    """Is shown everything that is printed, as it comes."""

    def start(
        self, agent: AgentSpec, env: Mapping[str, str], stdio: tuple[int, int, int]
    ) -> AbstractAsyncContextManager[Started]:
        """Runs it while this is open, and ends it after; AgentUnavailable if it cannot be started."""
        ...

    def clear(self) -> None:
        """Removes the answer file of an earlier turn, if the spec names one."""
        ...

    def left(self, said: Head, limit: int) -> Print:
        """What is taken for the answer, now that no process of the command is left."""
        ...


class CommandTurns:
    """One agent's command: how it is asked and how its answer is read."""

    def __init__(self, agent: AgentSpec) -> None:
        self._agent = agent
        self._prompting = PromptChannel(agent)
        path = agent.response_path
        self._reader = AnswerReader(find_at(path), path) if path else AnswerReader()
        self._ran = False
        """The command has run once: from then on it is the agent's doing if it does not."""

    async def converse(self, task: Task, context: TrialContext, env: Mapping[str, str], place: CommandPlace) -> Answer:
        """Runs the command once a turn, until one ends badly."""
        printed = Tail()
        printed.watch = place.heard
        notes: list[str] = []
        turns: list[Turn] = []
        for n, text in enumerate(task.turns, 1):
            asked = context.ask(text)
            with self._prompting.give(asked, env.get(MCP_CONFIG, ""), place.lend) as given:
                at = {**env, "HOLDFAST_TURN": str(n), **given.env}
                limit_ms = patience_ms(self._agent.timeout_ms, context)
                turns.append(await self._turn(asked, given, at, place, printed, notes, limit_ms))
            if turns[-1].cut:
                notes.append(f"the answer was cut at {TEXT_KEPT // 1_000_000} MB")
            if turns[-1].ending != "answered":
                break
        return Answer(tuple(turns), output=printed.text, notes=(*dict.fromkeys(notes), *printed.notes))

    async def _turn(
        self,
        asked: str,
        given: GivenPrompt,
        env: Mapping[str, str],
        place: CommandPlace,
        printed: Tail,
        notes: list[str],
        timeout_ms: float,
    ) -> Turn:
        place.clear()
        said = Head(self._reader.limit)
        with closing(Pipes(given.stdin, printed if self._agent.answer_file else said, printed)) as pipes:
            async with place.start(given.agent, env, pipes.stdio) as program:
                pipes.give()
                in_time = await program.within(timeout_ms / 1000) and program.took_ms <= timeout_ms
                pipes.drain()
                said.stop()
            pipes.drain()
        notes.extend(program.notes)
        if program.lost:
            raise HarnessError("the launch host died while the command ran")
        left = place.left(said, self._reader.limit)
        if not in_time:
            return self._reader.overdue(asked, left, timeout_ms)
        return self._ended(asked, left, program, printed.last_line)

    def _ended(self, asked: str, left: Print, program: Started, last_line: str) -> Turn:
        by_shell = self._agent.command is not None and program.status in NOT_RUN
        if by_shell and not self._ran and not left.data:
            raise not_run(self._agent, last_line)
        self._ran = True
        return self._reader.ended(asked, left, program.status, program.took_ms, last_line)
