"""An agent that Holdfast starts: its variables and places, how it shows that it is ready, where its answer is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from holdfast.reading.node import Node
from holdfast.reading.reader import Reader
from holdfast.reading.words import found
from holdfast.spec.references import names, url_fault
from holdfast.spec.sections.agent import AgentSection


def started_problems(reader: Reader, agent: AgentSection) -> None:
    """Reports what can never start, become ready or be read."""
    for name in agent.env:
        if not name or "=" in name or "\0" in name:
            message = f"{name[:60]!r} is no name of a variable"
            reader.error(agent.at.get("env"), "agent.env", message, code="bad-value")
    for key, text in (("command", agent.command), ("binary", agent.binary)):
        if text is not None and not text.strip():
            reader.error(agent.at.get(key), f"agent.{key}", "expected some text, found only blanks", code="bad-value")
    if agent.kind == "http" and not agent.launched and "{port}" in agent.endpoint:
        hint = "add agent.command, or write the port of the running agent"
        message = "{port} is for an agent that Holdfast starts"
        reader.error(agent.at.get("endpoint"), "agent.endpoint", message, hint=hint, code="conflict")
    _ready(reader, agent)
    _answer_file(reader, agent)


def _ready(reader: Reader, agent: AgentSection) -> None:
    node, text = agent.at.get("ready"), agent.ready
    if text is None or not agent.launched or agent.kind != "http" or names(text).any:
        return
    text = text.strip()
    hint = "a URL that answers, a port, or a text on a line that it prints"
    if node.kind in ("bool", "float") or not text:
        message = f"expected a URL, a port or a text, found {found(node)}"
        reader.error(node, "agent.ready", message, hint=hint, code="bad-value")
    elif text.startswith(("http://", "https://")) and (wrong := url_fault(text)):
        reader.error(node, "agent.ready", f"{wrong}, found {text[:60]!r}", code="bad-value")
    elif (node.kind == "int" or text.isdecimal()) and not (text.isdecimal() and 0 < int(text[:9]) < 65_536):
        message = f"expected a port from 1 to 65535, found {text[:20]}"
        reader.error(node, "agent.ready", message, code="bad-value")
    elif text.startswith("/") and not any(sign.isspace() for sign in text):
        hint = f"a URL is written whole: http://localhost:{{port}}{text[:40]}"
        message = "is looked for on a line that the agent prints"
        reader.warn(node, "agent.ready", message, hint=hint, code="lint-ready-path")


def _answer_file(reader: Reader, agent: AgentSection) -> None:
    name = agent.answer_file
    if name is None or names(name).any:
        return
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        message = f"expected a file in the spec's folder, found {name[:60]!r}"
        hint = "a relative path without .., such as answer.txt"
        reader.error(agent.at.get("answer_file"), "agent.answer_file", message, hint=hint, code="bad-value")


# Braces mean much to shells, to awk and in JSON: only a bare `{word}` that is nearly one of our own is taken for one.
_PLACE = r"(?<![${])\{([A-Za-z_][\w-]*)\}(?!\})"
_OWN = ("prompt", "prompt_file", "mcp_config", "port")


def places(reader: Reader, agent: AgentSection) -> None:
    """Reports places in command, binary, args and env that nothing can fill as they were meant."""
    if agent.kind not in ("command", "http") or not agent.launched:
        return
    asked = agent.kind == "command"
    known = ("prompt", "prompt_file", "mcp_config") if asked else ("port", "mcp_config")
    for text, node, path in _started_by(agent):
        for word in dict.fromkeys(re.findall(_PLACE, text)):
            _place(reader, agent, word, known, node, path)
    for text, node, path in () if asked else _with_port(agent):
        for word in dict.fromkeys(re.findall(_PLACE, text)):
            _misspelt(reader, word, ("port",), node, path)


def _started_by(agent: AgentSection) -> Iterator[tuple[str, Node, str]]:
    for key, text in (("command", agent.command), ("binary", agent.binary)):
        if text is not None:
            yield text, agent.at.get(key), f"agent.{key}"
    for index, (text, node) in enumerate(zip(agent.args, agent.at.get("args").items, strict=False)):
        yield text, node, f"agent.args[{index}]"


def _with_port(agent: AgentSection) -> Iterator[tuple[str, Node, str]]:
    """Where a server's port may stand. A URL's path has places of its own, which prompts fill."""
    for key, url in (("endpoint", agent.endpoint), ("ready", agent.ready), ("reset_endpoint", agent.reset_endpoint)):
        scheme, _, rest = (url or "").partition("://")
        if rest and scheme in ("http", "https"):
            yield rest.partition("/")[0], agent.at.get(key), f"agent.{key}"
    for name, text in agent.env.items():
        yield text, agent.at.get("env").get(name), f"agent.env.{name}"


def _place(reader: Reader, agent: AgentSection, word: str, known: Iterable[str], node: Node, path: str) -> None:
    if word == "mcp_config" and agent.mcp_config is None:
        hint = "name the agent's MCP servers in agent.mcp_config"
        reader.error(node, path, "{mcp_config} has nothing to stand for", hint=hint, code="bad-place")
    elif word in _OWN and word not in known:
        why, hint = _elsewhere(word)
        reader.error(node, path, f"{{{word}}} is not filled here: {why}", hint=hint, code="bad-place")
    elif word not in known:
        _misspelt(reader, word, known, node, path)


def _elsewhere(word: str) -> tuple[str, str]:
    if word == "port":
        return "a command agent has no port", "an agent that serves has an endpoint, and type: http"
    return "an HTTP agent is asked over HTTP", "the prompt goes into agent.request_template"


def _misspelt(reader: Reader, word: str, known: Iterable[str], node: Node, path: str) -> None:
    near = next((name for name in known if word != name and _near(word, name)), None)
    if near is not None:
        hint = f"did you mean {{{near}}}? If it is meant as it stands, write {{ {word} }}"
        reader.error(node, path, f"nothing fills {{{word[:40]}}}", hint=hint, code="bad-place")


def _near(word: str, name: str) -> bool:
    """Two slips are one too many in a word of four letters."""
    allowed = 2 if len(name) > 4 else 1
    return abs(len(word) - len(name)) <= allowed and _slips(word.lower().replace("-", "_"), name) <= allowed


def _slips(word: str, name: str) -> int:
    """Letters to put in, leave out, exchange or swap with their neighbour."""
    rows = [list(range(len(name) + 1))]
    for i, a in enumerate(word, 1):
        row = [i]
        for j, b in enumerate(name, 1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (a != b))
            if i > 1 and j > 1 and a == name[j - 2] and word[i - 2] == b:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]
