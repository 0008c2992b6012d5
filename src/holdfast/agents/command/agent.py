"""The command agent: a program that runs once per turn and leaves its answer on stdout or in a file."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, closing, nullcontext
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from holdfast.agents.command.answer import TEXT_LIMIT, AnswerBytes, AnswerReader, OutputEnd, read_answer_file
from holdfast.agents.command.channels import (
    PromptChannel,
    PromptDelivery,
    explain_piped_turn,
    explain_terminal_turn,
    open_terminal,
)
from holdfast.agents.conversation import Dialogue, compute_turn_limit_ms, converse, run_until_limit
from holdfast.agents.other_canaries import find_other_canaries
from holdfast.agents.placeholders import MCP_CONFIG
from holdfast.errors import AgentLost, AgentUnavailable
from holdfast.model.observation import Answer, Turn
from holdfast.model.shorten import shorten
from holdfast.model.spec import AgentSpec
from holdfast.model.task import Task
from holdfast.processes.pipes import Head, Pipes, Tail
from holdfast.processes.program import describe_end, end_on_exit, split_status
from holdfast.processes.startable import (
    BEGIN,
    IS_THERE,
    NOT_RUN,
    SHELL,
    build_argv,
    build_trial_variables,
    make_not_run_error,
)
from holdfast.processes.terminal import Terminal
from holdfast.protocols.sandbox import Started, Stdio
from holdfast.protocols.trial import TrialContext
from holdfast.protocols.world import AnswerFile, Place, World
from holdfast.reading.bash_syntax import BASH_FEATURES, explain_bash_only, find_bash_features
from holdfast.reading.json_values import compile_answer_path
from holdfast.reading.program_word import find_readable_calls, get_module

if TYPE_CHECKING:
    from holdfast.agents.http.reset import Reset

_PROBE_S = 10.0
_UNPARSABLE = 64
_PROBE = f"""{IS_THERE}
[ -z "$1" ] || {SHELL} -n -c "$1" || exit {_UNPARSABLE}
shift
while [ $# -gt 0 ]; do
  is_there "$1" || exit 1
  case $found in
    */*)
      first=$(sed -n '1s/^#![[:space:]]*//p' "$found" 2>/dev/null)
      first=${{first#*/env }}; first=${{first%% *}}
      case $first in ""|-*) ;; *) command -v -- "$first" >/dev/null || exit 1 ;; esac
      [ -z "$2" ] || [ -e "$2" ] || exit 1
      [ -z "$3" ] || "$1" -c 'import sys, importlib.util as u; sys.exit(u.find_spec(sys.argv[1]) is None)' "$3"
      exit ;;
  esac
  shift 3
done
"""
"""Tests whether the shell can parse the command, and whether the first program that is not the shell's own is there,
with its interpreter, script or module."""
_PARSE_HINT = "sh cannot parse it: check its quotes and brackets; a YAML block (command: |) keeps them as written"
_SYNTAX_ERROR = 2 << 8
"""The waitpid status of a shell that cannot parse its command; it has run the lines before the error."""


@dataclass
class _TurnState:
    """The state that all turns of one trial share."""

    context: TrialContext
    place: Place
    file: AnswerFile | None
    printed: Tail = field(default_factory=Tail)
    notes: list[str] = field(default_factory=list)


class _FinishedCommand(NamedTuple):
    """A command that has ended, or was killed at its time limit."""

    program: Started
    left: AnswerBytes
    in_time: bool
    question: Callable[[], str]
    """Returns the line at which the program waited for input; empty if it did not wait."""
    pipes: Pipes | Terminal


class CommandTurns:
    """Runs one agent's command for each turn and reads its answer."""

    def __init__(self, agent: AgentSpec) -> None:
        self._agent = agent
        self._channel = PromptChannel(agent)
        path = agent.response_path
        self._reader = AnswerReader(compile_answer_path(path), path) if path else AnswerReader()
        self.ran = False
        """Whether the command has run before: after that, a failure to run is the agent's doing."""

    async def converse(self, task: Task, world: World, place: Place, env: Mapping[str, str]) -> Answer:
        """Run the command once per turn, until one ends badly."""
        context = world.context
        name = self._agent.answer_file
        shared = _TurnState(context, place, None if name is None else world.answer_file(name))
        shared.printed.watch = world.on_output
        notes, numbers = shared.notes, count(len(context.turns.earlier) + 1)

        async def run_turn(text: str, dialogue: Dialogue | None) -> Turn:
            prompt = context.injector.rewrite_turn(text)
            delivery = self._deliver(prompt, dialogue, world, env)
            turn_env = {**env, "HOLDFAST_TURN": str(next(numbers)), **delivery.env}
            limit_ms = compute_turn_limit_ms(self._agent.timeout_ms, world)
            turn = await self._run_turn(prompt, delivery, turn_env, limit_ms, shared)
            if turn.cut:
                notes.append(f"the answer was cut at {TEXT_LIMIT // 1_000_000} MB")
            return turn

        turns = await converse(task, context, run_turn, notes, messages=self._channel.takes_messages)
        return Answer(turns, shared.printed.text, (*dict.fromkeys(notes), *shared.printed.notes))

    def _deliver(self, prompt: str, dialogue: Dialogue | None, world: World, env: Mapping[str, str]) -> PromptDelivery:
        config = env.get(MCP_CONFIG, "")
        if dialogue is None:
            return self._channel.deliver(prompt, world.lend, config)
        if self._channel.takes_messages:
            return self._channel.deliver(prompt, world.lend, config, dialogue.build_messages(prompt))
        return self._channel.deliver(dialogue.build_text(prompt), world.lend, config)

    async def _run_turn(
        self, prompt: str, delivery: PromptDelivery, env: Mapping[str, str], timeout_ms: float, shared: _TurnState
    ) -> Turn:
        printed, notes = shared.printed, shared.notes
        ran = await self._run_command(prompt, delivery, env, timeout_ms, shared)
        if ran.in_time:
            await self._refuse_start_mistake(ran, delivery.agent, env, shared)
            self.ran = True
        turn = self._end_turn(prompt, ran, printed, timeout_ms)
        if turn.ending == "answered" and not self._agent.dialogue:
            return turn
        if isinstance(ran.pipes, Pipes):
            return explain_piped_turn(turn, printed, notes, ran.question(), sandboxed=shared.place.boxed)
        return explain_terminal_turn(turn, ran.pipes, notes, ran.question())

    async def _run_command(
        self, prompt: str, delivery: PromptDelivery, env: Mapping[str, str], timeout_ms: float, shared: _TurnState
    ) -> _FinishedCommand:
        """Run the command to its end, or kill it at its time limit."""
        file, place, context = shared.file, shared.place, shared.context
        if file is not None:
            file.clear()
        answer = Head(self._reader.limit)
        last = OutputEnd(context.count_activity)
        with closing(
            self._open_streams(prompt, delivery, answer if file is None else None, shared.printed, last)
        ) as pipes:
            program = await place.start(pipes.wrap_command(place.build_argv(delivery.agent, env)), env, pipes.stdio)
            async with end_on_exit(program):
                pipes.close_child_ends()
                ended = await run_until_limit(program.wait_for_end(timeout_ms / 1000), context, ended=False)
                in_time = ended and program.took_ms <= timeout_ms
                pipes.drain()
                question = "" if ended else last.find_question()  # before it prints anything because of its end
                answer.stop()
            pipes.drain()
        shared.notes.extend(program.notes)
        if program.lost:
            raise AgentLost("the launch host died while the command ran")
        limit = self._reader.limit
        output = AnswerBytes(answer.data, answer.cut) if file is None else read_answer_file(file.name, file.read(limit))
        return _FinishedCommand(program, output, in_time, last.find_question if ended else lambda: question, pipes)

    def _open_streams(
        self, prompt: str, delivery: PromptDelivery, answer: Head | None, printed: Tail, last: OutputEnd
    ) -> Pipes | Terminal:
        """Open what the program reads and prints: pipes, or a terminal if the spec has a dialogue."""
        if self._agent.dialogue:
            return open_terminal(self._agent, prompt, [last, *([] if answer is None else [answer]), printed])
        errors = last.tee(printed)
        return Pipes(delivery.stdin, errors if answer is None else last.tee(answer), errors)

    async def _refuse_start_mistake(
        self, ran: _FinishedCommand, agent: AgentSpec, env: Mapping[str, str], shared: _TurnState
    ) -> None:
        """Raise AgentUnavailable if the first command failed because the shell could not run it as it is written.

        The command's own program, script or module may be missing. An agent may also be an existing shell script whose
        last command is missing: that is a result.
        """
        status, is_silent = ran.program.status, not ran.left.data
        # A command that ran once is written correctly, and one that printed an answer did start: whatever fails then is
        # the agent's doing, and a result.
        if self.ran or status == 0 or ran.program.out_of_memory or not (is_silent or status == _SYNTAX_ERROR):
            return
        calls = find_readable_calls(agent.command or shlex.join([agent.binary or "", *agent.args]))
        words = [word for call in calls for word in (call.program, call.script or "", get_module(call))]
        nothing = os.open(os.devnull, os.O_RDWR)
        try:
            argv = [SHELL, "-c", _PROBE, "sh", agent.command or "", *words]
            program = await shared.place.start(argv, env, Stdio(*[nothing] * 3))
            async with end_on_exit(program):
                await program.wait_for_end(_PROBE_S)
        finally:
            os.close(nothing)
        code, _ = split_status(program.status)  # None if the search itself was killed
        if code == _UNPARSABLE:
            raise make_not_run_error(self._agent, shared.printed.error_line, _PARSE_HINT)
        if is_silent and (code if calls else status in NOT_RUN):
            raise make_not_run_error(self._agent, shared.printed.last_line, shared.place.sees)

    def _end_turn(self, prompt: str, ran: _FinishedCommand, printed: Tail, timeout_ms: float) -> Turn:
        """Return the turn of a command that has ended, with its answer so far if it ended badly."""
        answer, program = self._reader.read(ran.left), ran.program
        ending, detail, took_ms = answer.ending, answer.detail, program.took_ms
        if not ran.in_time:
            ending, detail, took_ms = "timeout", f"no answer within {timeout_ms:g} ms", timeout_ms
        elif program.out_of_memory:
            ending, detail = "out_of_memory", f"it {program.out_of_memory}"
        elif program.status != 0:
            code, _ = split_status(program.status)
            ending, detail = "crashed", f"it {describe_end(program.status)}" if code is None else f"exit code {code}"
            detail += f": {shorten(printed.error_line)}" if printed.error_line else ""
        canaries = find_other_canaries(answer.returned, (prompt,))
        return Turn(prompt, answer.text, took_ms, ending, detail, cut=answer.cut, canaries=canaries)


class CommandAgent:
    """Starts a new process for every trial and turn, in the spec's folder or in the workspace of its sandbox.

    With several turns the command runs once per turn, with HOLDFAST_TURN=1, 2, … and the same HOLDFAST_TRIAL, until one
    ends badly. To remember anything between turns it must store it itself, for example in a file named by
    HOLDFAST_TRIAL.
    """

    def __init__(self, agent: AgentSpec) -> None:
        self._agent = agent
        self._turns = CommandTurns(agent)
        self._ran = False
        """Whether the command has run before: after that, a failure to run is the agent's doing."""
        self._reset: Reset | None = None
        self._slot: AbstractAsyncContextManager[None] = nullcontext()
        self.limit: int | None = None
        """Maximum number of concurrent trials; None for any number."""
        self.notes: tuple[str, ...] = ()
        """Notes for the reader about how it is run."""

    @classmethod
    def open_on_machine(cls, agent: AgentSpec, root: Path, environ: Mapping[str, str]) -> CommandAgent:
        """Open an agent in the spec's own folder, which trials share; with an answer file they run one at a time.

        Raises AgentUnavailable if the program does not exist.
        """
        build_argv(agent, root, {**environ, **agent.env})
        _refuse_bash_syntax(agent)
        self = cls(agent)
        self._reset = _open_reset(agent, root)
        if agent.answer_file:
            self._slot, self.limit = asyncio.Lock(), 1
            self.notes = (f"all trials write their answer to {agent.answer_file}, so they run one at a time",)
        return self

    async def run(self, task: Task, world: World) -> Answer:
        """Run the command turn after turn; raise AgentUnavailable if it cannot be started."""
        async with self._slot:
            if self._reset is not None and not world.context.turns.is_restarted:
                await self._reset()
            place = await world.place()
            agent = place.map_agent_paths(self._agent)
            turns = self._turns if agent is self._agent else CommandTurns(agent)
            turns.ran = self._ran
            with place.serve_trial(world.context):
                env = {**BEGIN, **place.environ, **build_trial_variables(world.trial)}
                answer = await turns.converse(task, world, place, env)
            self._ran = turns.ran
            return answer

    async def close(self) -> None:
        if self._reset is not None:
            await self._reset.close()


def _open_reset(agent: AgentSpec, root: Path) -> Reset | None:
    """Return the reset that the spec names; an HTTP client is imported only if it needs one."""
    if not agent.has_reset:
        return None
    from holdfast.agents.http.reset import open_reset

    return open_reset(agent, None, root, 1)


def _refuse_bash_syntax(agent: AgentSpec) -> None:
    """Raise AgentUnavailable if the command is written for bash and this machine's sh reads it in another way."""
    for name in find_bash_features(agent.command or ""):
        probe = [SHELL, "-c", BASH_FEATURES[name].probe]
        if subprocess.run(probe, capture_output=True, check=False).returncode:  # noqa: S603 - our own texts
            raise AgentUnavailable(
                f"agent.command cannot be run: {explain_bash_only(name)}",
                code="agent-not-started",
                config=True,
                key="agent.command",
            )
