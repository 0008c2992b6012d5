"""Problems of an agent that Holdfast starts: its variables, placeholders, `ready` and `answer_file`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.reading.words import find_misspelt
from holdfast.spec.references import find_names, find_url_error
from holdfast.spec.sections.agent import AgentSection


def report_start_problems(reader: Reader, agent: AgentSection) -> None:
    """Report settings with which the agent can never start, become ready or be read."""
    for name in agent.env:
        if not name or "=" in name or "\0" in name:
            reader.report(agent.at.get("env"), f"{name[:60]!r} cannot be the name of a variable")
    for key, text in (("command", agent.command), ("binary", agent.binary)):
        if text is not None and not text.strip():
            reader.report(agent.at.get(key), "expected some text, found only blanks")
    if agent.kind == "http" and not agent.launched and "{port}" in agent.endpoint:
        hint = "add agent.command, or write the port of the running agent"
        reader.report_conflict(agent.at.get("endpoint"), "{port} is for an agent that Holdfast starts", hint=hint)
    _check_ready(reader, agent)
    _check_answer_file(reader, agent)


def _check_ready(reader: Reader, agent: AgentSection) -> None:
    node, text = agent.at.get("ready"), agent.ready
    if text is None or not agent.launched or agent.kind != "http" or find_names(text).has_references:
        return
    text = text.strip()
    hint = "a URL that answers, a port, or a text on a line that the agent prints"
    if node.kind in ("bool", "float") or not text:
        reader.report_type(node, "a URL, a port or a text", hint=hint, code="bad-value")
    elif text.startswith(("http://", "https://")) and (wrong := find_url_error(text)):
        reader.report(node, f"{wrong}, found {text[:60]!r}")
    elif (node.kind == "int" or text.isdecimal()) and not (text.isdecimal() and 0 < int(text[:9]) < 65_536):
        reader.report(node, f"expected a port from 1 to 65535, found {text[:20]}")
    elif text.startswith("/") and not any(sign.isspace() for sign in text):
        hint = f"write a complete URL: http://localhost:{{port}}{text[:40]}"
        reader.warn(node, "Holdfast waits for a printed line with this text", hint=hint, code="lint-ready-path")


def _check_answer_file(reader: Reader, agent: AgentSection) -> None:
    name = agent.answer_file
    if name is None or find_names(name).has_references:
        return
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        message = f"expected a file in the spec's folder, found {name[:60]!r}"
        reader.report(agent.at.get("answer_file"), message, hint="a relative path without .., such as answer.txt")


# Braces have meanings in shells, awk and JSON: only a bare `{word}` similar to a known placeholder is taken for one.
_PLACE = r"(?<![${])\{([A-Za-z_][\w-]*)\}(?!\})"
_OWN = ("prompt", "prompt_file", "mcp_config", "port")


def report_bad_places(reader: Reader, agent: AgentSection) -> None:
    """Report unknown placeholders in command, binary, args and env."""
    if agent.kind not in ("command", "http") or not agent.launched:
        return
    is_command = agent.kind == "command"
    known = ("prompt", "prompt_file", "mcp_config") if is_command else ("port", "mcp_config")
    for node in (agent.at.get("command"), agent.at.get("binary"), *agent.at.get("args").items):
        for word in dict.fromkeys(re.findall(_PLACE, node.text)):
            if word == "mcp_config" and agent.mcp_config is None:
                hint = "name the agent's MCP servers in agent.mcp_config"
                reader.report(node, "nothing fills {mcp_config}", hint=hint, code="bad-place")
            elif word == "port" and word not in known:
                hint = "write type: http and an endpoint for an agent that serves"
                reader.report(node, "nothing fills {port}: a command agent has no port", hint=hint, code="bad-place")
            elif word in _OWN and word not in known:
                hint = "put the prompt into agent.request_template"
                message = f"nothing fills {{{word}}}: an HTTP agent gets the prompt in a request"
                reader.report(node, message, hint=hint, code="bad-place")
            elif word not in known:
                _report_misspelt(reader, word, known, node)
    for text, node in () if is_command else _iter_port_texts(agent):
        for word in dict.fromkeys(re.findall(_PLACE, text)):
            _report_misspelt(reader, word, ("port",), node)


def _iter_port_texts(agent: AgentSection) -> Iterator[tuple[str, Node]]:
    """Yield texts that may contain the server's port. The path of a URL has other placeholders, which prompts fill."""
    for key in ("endpoint", "ready", "reset_endpoint"):
        node = agent.at.get(key)
        scheme, _, rest = node.text.partition("://")
        if rest and scheme in ("http", "https"):
            yield rest.partition("/")[0], node
    for _, node in agent.at.get("env").pairs.values():
        yield node.text, node


def _report_misspelt(reader: Reader, word: str, known: Iterable[str], node: Node) -> None:
    meant = find_misspelt(word, known)
    if meant is not None and meant != word:
        hint = f"did you mean {{{meant}}}? Write {{ {word} }} if it is not a placeholder"
        reader.report(node, f"nothing fills {{{word[:40]}}}", hint=hint, code="bad-place")
