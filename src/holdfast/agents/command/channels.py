"""How a prompt reaches a command: on stdin, as an argument, in a variable, in a file, or as a list of messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec.structs import replace

from holdfast.agents.command.answer import describe_wait
from holdfast.agents.conversation import AgentMessage
from holdfast.agents.placeholders import PROMPT, PROMPT_FILE, fill_argument, fill_command, has_placeholder
from holdfast.errors import AgentMisconfigured
from holdfast.model.codec import encode, make_encodable, make_storable
from holdfast.model.observation import Turn
from holdfast.model.shorten import shorten
from holdfast.model.spec import AgentSpec
from holdfast.processes.pipes import Sink, Tail
from holdfast.processes.terminal import LINE_LIMIT, Terminal, TypedLine

_READ = 4_000
"""Characters of the end of the output that are read."""
_TERMINAL = re.compile(
    r"not a (?:tty|terminal)|/dev/tty|requires? (?:a|an interactive) (?:tty|terminal)|stdin is not"
    r"|raw mode is not supported|EOF when reading a line|inappropriate ioctl",
    re.IGNORECASE,
)
_GPU = re.compile(
    r"no CUDA|CUDA (?:is not|driver|error|unknown)|libcuda\.so|nvidia-smi|/dev/(?:nvidia|dri|kfd)"
    r"|\bno (?:usable )?GPUs?\b|\bGPU (?:is )?(?:not|required)",
    re.IGNORECASE,
)
_BROWSER = re.compile(
    r"(?:open|launch|find|start)\w*\b[^\n]{0,20}\bbrowser|playwright install|xdg-open: |Executable doesn't exist at"
    r"|cannot open display|Missing X server|\$DISPLAY",
    re.IGNORECASE,
)
_IN_SANDBOX = (
    (_GPU, "it seems to need a GPU: a sandbox has no access to devices; `--backend process` runs it without one"),
    (
        _BROWSER,
        "it seems to need a browser: a sandbox has no display, and shows only programs below /usr, /opt"
        " and agent.dir; a package's own browser (playwright) is in a home folder that the agent cannot see",
    ),
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def open_terminal(agent: AgentSpec, prompt: str, sinks: Sequence[Sink]) -> Terminal:
    """Open the terminal of one turn. The prompt replaces `{prompt}`, without control characters."""
    prompt = _CONTROLS.sub("", prompt)
    lines = [TypedLine(step.expect, step.type.replace("{prompt}", prompt)) for step in agent.dialogue]
    if any(len(row.encode()) > LINE_LIMIT for line in lines for row in line.text.split("\n")):
        text = f"a line of the prompt is longer than {LINE_LIMIT} bytes, which no terminal accepts"
        raise AgentMisconfigured(text, code="prompt-undeliverable", hint="use agent.prompt: arg, env or file")
    return Terminal(lines, sinks)


def explain_terminal_turn(turn: Turn, terminal: Terminal, notes: list[str], question: str) -> Turn:
    """Add to the turn an expected question that never appeared on its terminal, or the question it waits at."""
    if terminal.awaited is not None:
        missed = f"{shorten(terminal.awaited)!r} never appeared on its terminal (agent.dialogue)"
        if turn.ending == "timeout":
            return _add_wait(turn, f"{missed}; {_describe_last_lines(terminal)}")
        notes.append(f"it ended before that: {missed}")
    elif turn.ending == "timeout":
        idle = f"agent.dialogue has nothing more to type; {_describe_last_lines(terminal)}"
        return _add_wait(turn, describe_wait(question) if question else idle)
    return turn


def _add_wait(turn: Turn, what: str) -> Turn:
    return replace(turn, detail=f"{turn.detail}: {what}", awaits=what)


def explain_piped_turn(turn: Turn, printed: Tail, notes: list[str], question: str, *, sandboxed: bool) -> Turn:
    """Add to the turn the question that it waited at, or its output if it gave no answer."""
    if turn.ending == "timeout":
        return _add_wait(turn, describe_wait(question)) if question else turn
    missed = [*find_missing_facilities(printed.text, sandboxed=sandboxed)] if turn.ending == "crashed" else []
    notes.extend(missed)
    if not missed and turn.ending in ("crashed", "no_answer") and question:
        asked = f"it ended at a question, {shorten(question)!r}"
        notes.append(f"{asked}: agent.dialogue gives it a terminal and answers it")
    if turn.ending == "no_answer" and (last_line := printed.error_line):
        return replace(turn, detail=f"{turn.detail}; it also printed: {shorten(last_line)}")
    return turn


def _describe_last_lines(terminal: Terminal) -> str:
    last_lines = terminal.last_lines
    return f"the last lines there: {shorten(last_lines)}" if last_lines else "nothing was printed there"


def find_missing_facilities(printed: str, *, sandboxed: bool) -> Iterator[str]:
    """Yield a note for each facility (terminal, GPU, browser) that the agent seems to need and did not have."""
    end = printed[-_READ:]
    if _TERMINAL.search(end):
        yield "it seems to need a terminal or more input: agent.dialogue gives it one, and answers its questions"
    for words, note in _IN_SANDBOX if sandboxed else ():
        if words.search(end):
            yield note


WORD_LIMIT = 128 * 1024 - 64
"""Maximum number of bytes of one argument or variable, less a name."""


Lend: TypeAlias = Callable[[str, bytes], str]
"""Writes a file of that name and content where the program can read it; returns its path there."""


@dataclass(frozen=True)
class PromptDelivery:
    """A prompt ready for delivery: the arguments, environment and stdin of the program."""

    agent: AgentSpec
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""


class PromptChannel:
    """The channel that the spec names, or that a placeholder in the command or its arguments implies."""

    def __init__(self, agent: AgentSpec) -> None:
        channel = agent.prompt
        if channel == "stdin" and has_placeholder(agent, "prompt"):
            channel = "arg"
        elif channel == "stdin" and has_placeholder(agent, "prompt_file"):
            channel = "file"
        self._way = channel
        self._file = channel == "file" or has_placeholder(agent, "prompt_file")
        self._word = channel in ("arg", "env") or has_placeholder(agent, "prompt")
        if channel == "arg" and not has_placeholder(agent, "prompt"):  # then it is the last argument
            if agent.command is not None:
                agent = replace(agent, command=agent.command.rstrip() + " {prompt}")
            else:
                agent = replace(agent, args=(*agent.args, "{prompt}"))
        self._agent = agent
        self._command = None if agent.command is None else fill_command(agent.command)

    @property
    def takes_messages(self) -> bool:
        """Whether stdin gets the complete conversation so far, as JSON."""
        return self._way == "messages"

    def deliver(
        self, prompt: str, lend: Lend, mcp_config: str = "", messages: Sequence[AgentMessage] = ()
    ) -> PromptDelivery:
        """Return the prompt, ready for delivery; `mcp_config` is the path for its placeholder in an argument."""
        prompt = make_encodable(prompt)
        if self._word:
            _check_word(prompt)
        path = lend("prompt.txt", prompt.encode()) if self._file else ""
        env = {PROMPT_FILE: path} if self._file else {}
        if self._way == "env" or (self._command is not None and self._word):
            env[PROMPT] = prompt
        values = {"prompt": prompt, "prompt_file": path, "mcp_config": mcp_config}
        args = tuple([fill_argument(arg, values) for arg in self._agent.args])
        called = replace(self._agent, command=self._command, args=args)
        if self._way == "messages":
            return PromptDelivery(called, env, encode(make_storable(list(messages))))
        return PromptDelivery(called, env, prompt.encode() if self._way == "stdin" else b"")


def _check_word(prompt: str) -> None:
    why = "contains a NUL character" if "\0" in prompt else ""
    if len(prompt) > WORD_LIMIT // 4 and len(prompt.encode()) > WORD_LIMIT:
        why = f"is longer than {WORD_LIMIT // 1024} kB"
    if why:
        text = f"the prompt {why}, so it cannot be passed as an argument or variable"
        raise AgentMisconfigured(text, code="prompt-undeliverable", hint="use agent.prompt: stdin or file")
