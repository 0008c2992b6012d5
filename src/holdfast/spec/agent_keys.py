"""Which keys of `agent:` mean something for an agent of its type. A key that means nothing is an error."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.reading.reader import Reader
from holdfast.spec.followups import unused_default
from holdfast.spec.sections.agent import AgentSection

_REQUEST = ("method", "request_template", "query_params", "headers", "parse_structured_input", "keep_alive")
_REQUEST_DEFAULTS = {"method": "POST", "query_params": {}, "headers": {}, "parse_structured_input": True}
"""Of every agent in a file whose every default is written out."""
_PYTHON = ("tools", "tool_registry", "llm")
_PROGRAM = ("command", "binary", "args")
_SERVER = ("ready", "spares")
_HOSTED = ("snapshot", "model")


def misplaced(reader: Reader, agent: AgentSection) -> None:
    """Reports keys without a meaning for this agent."""
    for key, instead in _without_meaning(agent).items():
        if not agent.at.has(key):
            continue
        if key in _REQUEST and agent.at.get(key).plain() == _REQUEST_DEFAULTS.get(key):
            unused_default(reader, agent.at.key(key), f"agent.{key}")
        else:
            message = f"has no meaning for {_described(agent)}"
            hint = f"remove it, or {instead}" if instead else "remove it"
            reader.error(agent.at.key(key), f"agent.{key}", message, hint=hint, code="unused-key")


def _described(agent: AgentSection) -> str:
    if agent.kind == "http":
        return "an HTTP agent that Holdfast starts" if agent.launched else "an HTTP agent that is already running"
    return {"command": "a command agent", "python": "a Python agent", "langchain": "a LangChain agent"}.get(
        agent.kind, f"an agent of type {agent.type}"
    )


def _without_meaning(agent: AgentSection) -> dict[str, str]:
    """Keys that mean nothing here, each with what would give it a meaning."""
    runnable = {} if agent.kind == "langchain" else {"input": "say type: langchain for an agent with invoke or ainvoke"}
    return {**runnable, **_of_other_types(agent)}


def _of_other_types(agent: AgentSection) -> dict[str, str]:
    if agent.in_python:
        return {
            **_all((*_REQUEST, "response_path"), "say type: http for an agent behind a URL"),
            **_all(_PROGRAM, "say type: command for an agent that is a program"),
            **_all((*_SERVER, *_HOSTED, "prompt", "answer_file", "dialogue")),
        }
    if agent.kind == "command":
        more = "say type: http for a program that serves"
        return {**_all((*_REQUEST, *_SERVER, "endpoint"), more), **_all((*_PYTHON, *_HOSTED))}
    if agent.kind == "http":
        only_command = _all(
            ("prompt", "answer_file", "dialogue"), "say type: command for a program that answers and ends"
        )
        return {**only_command, **_all(_PYTHON, "say type: python"), **_all(_HOSTED), **_not_started(agent)}
    return _all((*_REQUEST, "response_path", *_PYTHON))


def _not_started(agent: AgentSection) -> dict[str, str]:
    """Of an HTTP agent: what means something only if Holdfast starts it."""
    if agent.launched:
        return {}
    keys = ["dir", *_SERVER, *([] if agent.isolation == "inline" else ["isolation"])]  # inline is refused by name
    if not agent.gateway:
        keys += ["limits", "mcp_config", *([] if agent.reset_function else ["env"])]
    return _all(keys, "let Holdfast start the agent by agent.command")


def _all(keys: Sequence[str], instead: str = "") -> dict[str, str]:
    return dict.fromkeys(keys, instead)
