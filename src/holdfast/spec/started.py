"""An agent that Holdfast starts: its variables, how it shows that it is ready, where it leaves its answer."""

from __future__ import annotations

from pathlib import PurePosixPath

from holdfast.reading.reader import Reader
from holdfast.reading.words import found
from holdfast.spec.references import names
from holdfast.spec.sections.agent import AgentSection
from holdfast.spec.urls import url_fault


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
