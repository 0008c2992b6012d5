"""How a prompt reaches a command: on stdin, as an argument, in a variable, in a file, or with all messages before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec.structs import replace

from holdfast.agents.dialogue import GivenMessage
from holdfast.agents.placeholders import PROMPT, PROMPT_FILE, holds, in_argument, in_shell
from holdfast.errors import AgentUnavailable
from holdfast.model.codec import carried, encodable, encode
from holdfast.model.spec import AgentSpec

WORD_LIMIT = 128 * 1024 - 64
"""Bytes of one argument or variable that the system takes, less a name."""


Lend: TypeAlias = Callable[[str, bytes], str]
"""Puts a file of that name and content where the program can read it; its path there."""


@dataclass(frozen=True)
class GivenPrompt:
    """A prompt on its way: what the program is called with, what it finds in its environment and on stdin."""

    agent: AgentSpec
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""


class PromptChannel:
    """The way that the spec names; a place in the command or its arguments names it too."""

    def __init__(self, agent: AgentSpec) -> None:
        way = agent.prompt
        if way == "stdin" and holds(agent, "prompt"):
            way = "arg"
        elif way == "stdin" and holds(agent, "prompt_file"):
            way = "file"
        self._way = way
        self._file = way == "file" or holds(agent, "prompt_file")
        self._word = way in ("arg", "env") or holds(agent, "prompt")
        if way == "arg" and not holds(agent, "prompt"):
            agent = _with_last(agent)
        self._agent = agent
        self._command = None if agent.command is None else in_shell(agent.command)

    @property
    def takes_messages(self) -> bool:
        """The whole conversation so far is on stdin, as JSON."""
        return self._way == "messages"

    def give(self, prompt: str, lend: Lend, mcp_config: str = "", messages: Sequence[GivenMessage] = ()) -> GivenPrompt:
        """The prompt, ready to be delivered; `mcp_config` is the path for its place in an argument."""
        prompt = encodable(prompt)
        if self._word:
            _check_word(prompt)
        path = lend("prompt.txt", prompt.encode()) if self._file else ""
        env = {PROMPT_FILE: path} if self._file else {}
        if self._way == "env" or (self._command is not None and self._word):
            env[PROMPT] = prompt
        values = {"prompt": prompt, "prompt_file": path, "mcp_config": mcp_config}
        args = tuple([in_argument(arg, values) for arg in self._agent.args])
        called = replace(self._agent, command=self._command, args=args)
        if self._way == "messages":
            return GivenPrompt(called, env, encode(carried(list(messages))))
        return GivenPrompt(called, env, prompt.encode() if self._way == "stdin" else b"")


def _with_last(agent: AgentSpec) -> AgentSpec:
    """The prompt as one more argument, after all others."""
    if agent.command is not None:
        return replace(agent, command=agent.command.rstrip() + " {prompt}")
    return replace(agent, args=(*agent.args, "{prompt}"))


def _check_word(prompt: str) -> None:
    why = "has a NUL character in it" if "\0" in prompt else ""
    if len(prompt) > WORD_LIMIT // 4 and len(prompt.encode()) > WORD_LIMIT:
        why = f"is longer than {WORD_LIMIT // 1024} kB"
    if why:
        raise AgentUnavailable(
            f"the prompt {why}: no argument or variable can carry it",
            hint="use agent.prompt: stdin or file",
            config=True,
        )
