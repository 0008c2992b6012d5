"""Published agents by the name of their program, and the line that installs each."""

from __future__ import annotations

import os

_NPM = {
    "claude": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "goose-binary-linux-x64": "@aaif/goose-binary-linux-x64",
    "gemini": "@google/gemini-cli",
    "opencode": "opencode-ai",
}
_PIP = {
    "aider": "aider-chat",
    "gptme": "gptme",
    "interpreter": "open-interpreter 'setuptools<81'",
    "llm": "llm",
    "mini": "mini-swe-agent mcp",
    "sgpt": "shell-gpt click",
    "smolagent": "smolagents",
}
_OTHERS = {"goose": "npm install -g @aaif/goose-binary-linux-x64 has it as goose-binary-linux-x64"}


def install_line(program: str) -> str:
    """What to type to have a program; empty for one that is not known."""
    name = os.path.basename(program)
    if name in _NPM:
        return f"npm install -g {_NPM[name]}"
    return f"pip install {_PIP[name]}" if name in _PIP else _OTHERS.get(name, "")


def install_hint(program: str) -> str:
    """The same as the beginning of a hint."""
    line = install_line(program)
    return f"to install {os.path.basename(program)}: {line}; " if line else ""
