"""Placeholders such as `{prompt}` and `{port}`, filled so that no value is executed as code. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from holdfast.model.spec import AgentSpec

PROMPT, PROMPT_FILE = "HOLDFAST_PROMPT", "HOLDFAST_PROMPT_FILE"
"""The variables through which a prompt reaches a command."""
MCP_CONFIG = "HOLDFAST_MCP_CONFIG"
"""The variable that names the rewritten MCP configuration."""
VARIABLES: Mapping[str, str] = {"prompt": PROMPT, "prompt_file": PROMPT_FILE, "mcp_config": MCP_CONFIG}
PORT = "{port}"

_PLACE = re.compile(r"\{(prompt|prompt_file|mcp_config)\}")
_CLOSERS = {"'": "'", '"': '"', "`": "`", "(": ")"}


def has_placeholder(agent: AgentSpec, name: str) -> bool:
    """Return whether the command or its arguments have this placeholder."""
    return any(f"{{{name}}}" in text for text in (agent.command or "", *agent.args))


def fill_argument(text: str, values: Mapping[str, str]) -> str:
    """Fill one argument of a program that is executed without a shell, in one pass: values are not filled again."""
    return _PLACE.sub(lambda place: values.get(place[1], place[0]), text)


def fill_command(command: str) -> str:
    """Replace each placeholder of a shell command by its variable, quoted for its position.

    The shell expands the variable and does not execute its value as code.
    """
    # A value is never pasted into the command, where the shell would run it. Its variable is, quoted so that the shell
    # neither splits nor expands the value, whatever quotes surround the placeholder.
    walk = _ShellScanner(command)
    parts: list[str] = []
    while walk.at < len(command):
        place = _PLACE.match(command, walk.at)
        if place is None:
            parts.append(walk.advance())
        else:
            parts.append(_expand_variable(VARIABLES[place[1]], walk.quote))
            walk.at = place.end()
    return "".join(parts)


def fill_mcp_config(agent: AgentSpec, environ: Mapping[str, str]) -> AgentSpec:
    """Fill the section of an HTTP agent, whose command has no placeholder for a prompt."""
    values = {"mcp_config": environ.get(MCP_CONFIG, "")}
    return agent.map_texts(fill_command, "command").map_texts(lambda text: fill_argument(text, values), "args")


def fill_port(agent: AgentSpec, port: int) -> AgentSpec:
    """Return the agent's section for an instance on this port."""
    names = ("endpoint", "command", "binary", "args", "ready", "reset_endpoint", "env")
    return agent.map_texts(lambda text: text.replace(PORT, str(port)), *names)


def _expand_variable(variable: str, quote: str) -> str:
    """Return the expansion of the variable as one word; it closes single quotes around it first."""
    if quote == '"':
        return f"${{{variable}}}"
    quoted = f'"${{{variable}}}"'
    return f"'{quoted}'" if quote == "'" else quoted


class _ShellScanner:
    """Walks through a shell command and tracks the open quotes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._open = [""]
        """Open quotes and brackets; `(` and a backquote start a new context."""
        self.at = 0

    @property
    def quote(self) -> str:
        """The quotes around this position: ', " or none."""
        return self._open[-1] if self._open[-1] in ("'", '"') else ""

    def advance(self) -> str:
        """Move past one character, or past characters that belong together."""
        token = self._next_token()
        self.at += len(token)
        return token

    def _next_token(self) -> str:
        sign, top, before = self._text[self.at], self._open[-1], self._text[self.at - 1 : self.at]
        if sign == _CLOSERS.get(top):
            self._open.pop()
        elif top == "'":
            return sign
        elif sign == "\\":
            return self._text[self.at : self.at + 2]
        elif sign == "#" and top != '"' and (not before or before in " \t\n;&|("):
            return self._text[self.at :].partition("\n")[0]  # a comment, in which quotes have no meaning
        elif sign in '"`' or (sign == "'" and top != '"') or (sign == "(" and (top != '"' or before == "$")):
            self._open.append(sign)  # inside double quotes, a bracket counts only after `$`
        return sign
