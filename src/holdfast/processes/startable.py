"""The command for an agent that Holdfast starts, its environment, and the reasons why it cannot be started."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from holdfast.errors import AgentUnavailable, HarnessError
from holdfast.model.codec import encode
from holdfast.model.spec import AgentSpec
from holdfast.model.trial import Trial
from holdfast.processes.launcher import Launcher
from holdfast.processes.program import Program
from holdfast.protocols.sandbox import Stdio

_INSTALL = {
    "claude": "npm install -g @anthropic-ai/claude-code",
    "codex": "npm install -g @openai/codex",
    "gemini": "npm install -g @google/gemini-cli",
    "goose": "npm install -g @aaif/goose-binary-linux-x64 has it as goose-binary-linux-x64",
    "goose-binary-linux-x64": "npm install -g @aaif/goose-binary-linux-x64",
    "opencode": "npm install -g opencode-ai",
    "aider": "pip install aider-chat",
    "gptme": "pip install gptme",
    "interpreter": "pip install open-interpreter 'setuptools<81'",
    "llm": "pip install llm",
    "mini": "pip install mini-swe-agent mcp",
    "sgpt": "pip install shell-gpt click",
    "smolagent": "pip install smolagents",
}
"""The install commands of known programs."""
SHELL = "/bin/sh"
NOT_RUN_CODES = (126, 127)
"""Exit codes of a shell whose command is not executable or does not exist."""
NOT_RUN = tuple(code << 8 for code in NOT_RUN_CODES)
"""The same exit codes as waitpid statuses."""
IS_THERE = """
is_there() {
  found=$(command -v -- "$1") || return 1
  case $found in */*) [ -f "$found" ] && [ -x "$found" ] ;; esac
}
"""
"""A shell function that tests whether a program can run: a file (`$found` is its path) or a builtin."""
BEGIN: Mapping[str, str] = {"PYTHONUNBUFFERED": "1"}
"""Set unless the user sets it: the output of a Python agent must not be buffered when it crashes or waits."""

_MISSING = re.compile(r"([^\s:]+): (?:command )?not found$")
"""How shells report that no program of that name exists."""
_OURS = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)


def build_argv(agent: AgentSpec, root: Path, environ: Mapping[str, str]) -> list[str]:
    """Return the program and its arguments as written; raise AgentUnavailable if there is no such program."""
    if agent.command is not None:
        return [SHELL, "-c", agent.command]
    name = agent.binary or ""
    local_path = root / name
    on_path = None if os.sep in name else shutil.which(name, path=environ.get("PATH", os.defpath))
    path = on_path or (str(local_path) if local_path.is_file() else "")
    if not path:
        where = "no such file" if os.sep in name else "neither on PATH nor next to the spec"
        hint = f"{make_install_hint(name)}a path is relative to the spec's folder; a shell command is agent.command"
        raise AgentUnavailable(
            f"cannot start agent.binary {name!r}: {where}",
            code="agent-not-started",
            hint=hint,
            config=True,
            key="agent.binary",
        )
    return [path, *agent.args]


async def start(launcher: Launcher, argv: list[str], env: Mapping[str, str], cwd: Path, stdio: Stdio) -> Program:
    """Start a program; raise AgentUnavailable if the system refuses, HarnessError if it is out of resources."""
    try:
        return await launcher.start(argv, env, cwd, stdio)
    except ValueError as refused:
        raise AgentUnavailable(f"cannot start {argv[0]}: {refused}", code="agent-not-started", config=True) from refused
    except OSError as refused:
        if refused.errno in _OURS:
            raise HarnessError(f"no process could be started: {refused.strerror}", code="no-process") from refused
        hint = _HINTS.get(refused.errno or 0, "")
        message = f"cannot start {argv[0]}: {refused.strerror}"
        raise AgentUnavailable(message, code="agent-not-started", hint=hint, config=True) from refused


def make_not_run_error(agent: AgentSpec, output: str, sees: str) -> AgentUnavailable:
    """Return the error of a shell that could not run the command; `sees` says where it searched for programs."""
    missing, key = _MISSING.search(output), "agent.command" if agent.command is not None else "agent.binary"
    return AgentUnavailable(
        f"{key} cannot be run: {output or 'the shell found no such program'}",
        code="agent-not-started",
        hint=(make_install_hint(missing[1]) if missing else "") + sees,
        body=agent.command or "",
        config=True,
        key=key,
    )


_HINTS = {
    errno.EACCES: "make it executable: chmod +x",
    errno.ENOEXEC: "its first line must name its interpreter, as in #!/bin/sh",
    errno.ENOENT: "the file, or the interpreter that its first line names, does not exist",
    errno.E2BIG: "the prompt is too long for an argument or a variable: use agent.prompt: stdin or file",
}


def get_install_command(program: str) -> str:
    """Return the install command of a known program; empty for others."""
    return _INSTALL.get(os.path.basename(program), "")


def make_install_hint(program: str) -> str:
    """Return the install command as the beginning of a hint."""
    line = get_install_command(program)
    return f"to install {os.path.basename(program)}: {line}; " if line else ""


TRIAL = "HOLDFAST_TRIAL"


def build_trial_variables(trial: Trial) -> dict[str, str]:
    """Return the variables that describe the trial to the agent."""
    variables = {TRIAL: trial.id, "HOLDFAST_REPLICA": str(trial.replica), "HOLDFAST_SEED": str(trial.seed)}
    for name, value in trial.params.items():
        variables[f"PARAM_{name.upper()}"] = value if isinstance(value, str) else encode(value).decode()
    return variables
