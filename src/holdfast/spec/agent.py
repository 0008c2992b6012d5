"""The `agent:` section to an AgentSpec, with checks across its keys; also an agent stored in a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from holdfast.model.spec import AgentSpec, TerminalStep, Unbuilt, UsageLimits
from holdfast.reading.fields import convert
from holdfast.reading.file import read_file
from holdfast.reading.json_values import HINT, BadPath, compile_path
from holdfast.reading.reader import Reader
from holdfast.reading.tree import parse
from holdfast.spec.agent_started import report_bad_places, report_start_problems
from holdfast.spec.explain import find_misspelt_keys, report_inner, warn_unused_default
from holdfast.spec.references import find_names, find_url_error
from holdfast.spec.sections.agent import AgentSection
from holdfast.spec.sections.file import File
from holdfast.spec.sections.forms import CODE
from holdfast.spec.shell_places import report_unquotable

_REQUEST = ("method", "request_template", "query_params", "headers", "parse_structured_input", "keep_alive")
_REQUEST_DEFAULTS = {"method": "POST", "query_params": {}, "headers": {}, "parse_structured_input": True}
"""Defaults of agents in files that write out every default."""
_PYTHON = ("tools", "tool_registry", "llm")
_PROGRAM = ("command", "binary", "args")
_SERVER = ("ready", "spares")
_HOSTED = ("snapshot", "model")


def report_misplaced_keys(reader: Reader, agent: AgentSection) -> None:
    """Report keys that have no meaning for this agent."""
    runnable = {} if agent.kind == "langchain" else {"input": "set type: langchain for an agent with invoke or ainvoke"}
    for key, instead in (runnable | _find_keys_of_others(agent)).items():
        if not agent.at.has(key):
            continue
        if key in _REQUEST and agent.at.get(key).to_plain() == _REQUEST_DEFAULTS.get(key):
            warn_unused_default(reader, agent.at.get_key(key))
        else:
            message = f"has no meaning for {_describe_agent(agent)}"
            hint = f"remove it, or {instead}" if instead else "remove it"
            reader.report(agent.at.get_key(key), message, hint=hint, code="unused-key")


def _describe_agent(agent: AgentSection) -> str:
    if agent.kind == "http":
        return "an HTTP agent that Holdfast starts" if agent.launched else "an HTTP agent that is already running"
    return {"command": "a command agent", "python": "a Python agent", "langchain": "a LangChain agent"}.get(
        agent.kind, f"an agent of type {agent.type}"
    )


def _find_keys_of_others(agent: AgentSection) -> dict[str, str]:
    """Return the keys of other kinds of agents, each with a change that would give it a meaning."""
    if agent.is_python:
        return {
            **dict.fromkeys((*_REQUEST, "response_path"), "set type: http for an agent behind a URL"),
            **dict.fromkeys(_PROGRAM, "set type: command for an agent that is a program"),
            **dict.fromkeys((*_SERVER, *_HOSTED, "prompt", "answer_file", "dialogue"), ""),
        }
    if agent.kind == "command":
        more = "set type: http for a program that serves"
        return {**dict.fromkeys((*_REQUEST, *_SERVER, "endpoint"), more), **dict.fromkeys((*_PYTHON, *_HOSTED), "")}
    if agent.kind == "http":
        only_command = dict.fromkeys(
            ("prompt", "answer_file", "dialogue"), "set type: command for a program that answers and ends"
        )
        return {
            **only_command,
            **dict.fromkeys(_PYTHON, "set type: python"),
            **dict.fromkeys(_HOSTED, ""),
            **_find_unstarted_keys(agent),
        }
    return dict.fromkeys((*_REQUEST, "response_path", *_PYTHON), "")


def _find_unstarted_keys(agent: AgentSection) -> dict[str, str]:
    """Return the keys of an HTTP agent that have a meaning only if Holdfast starts it."""
    if agent.launched:
        return {}
    keys = ["dir", *_SERVER, *([] if agent.isolation == "inline" else ["isolation"])]  # inline is rejected by name
    if not agent.gateway:
        keys += ["limits", "mcp_config", *([] if agent.reset_function else ["env"])]
    return dict.fromkeys(keys, "let Holdfast start the agent with agent.command")


_PLACE = r"\{([A-Za-z_]\w*)\}"


def build_agent(section: AgentSection) -> AgentSpec:
    """Return the section as the rest of Holdfast reads it."""
    # Starting a server for each trial is slow. If the file says how to reset it, one server is reused between trials.
    is_reused = section.kind == "http" and section.launched and (section.reset_endpoint or section.reset_function)
    return convert(
        AgentSpec,
        section,
        type=section.kind,
        timeout_ms=section.timeout,
        isolation="worker" if is_reused and not section.at.has("isolation") else section.isolation,
        prompt=_get_prompt_channel(section),
        dialogue=tuple(TerminalStep(entry.expect, entry.type) for entry in section.dialogue),
        position=section.at.position,
    )


def _get_prompt_channel(section: AgentSection) -> Literal["stdin", "arg", "env", "file", "messages"]:
    """Return how the prompt is passed: in the command's placeholder if it has one, unless the file says otherwise."""
    placed = any("{prompt}" in part for part in (section.command or "", *section.args))
    return "arg" if placed and not section.at.has("prompt") else section.prompt


def report_agent_problems(reader: Reader, agent: AgentSection) -> None:
    """Report keys that do not fit together; nothing for an agent whose type is misspelt."""
    at = agent.at
    kind = at.get("type").path
    if reader.has_error(kind) or kind in find_misspelt_keys(reader.problems):
        return
    _check_endpoint(reader, agent)
    if agent.kind == "command" and not at.has("command") and not at.has("binary"):
        reader.report_missing(at, "command", hint="the command that starts the agent")
    if agent.kind == "snapshot" and agent.snapshot is None:
        reader.report_missing(at, "snapshot", hint="the name of the stored agent")
    report_misplaced_keys(reader, agent)
    _check_template(reader, agent)
    _check_terminal(reader, agent)
    report_start_problems(reader, agent)
    report_bad_places(reader, agent)
    report_unquotable(reader, at.get("command"), agent.command or "")
    _check_answer_path(reader, agent)
    for key, message, hint in _iter_conflicts(agent):
        reader.report_conflict(at.get_key(key), message, hint=hint)
    if agent.limits == UsageLimits():
        reader.report(at.get("limits"), "nothing is limited", hint="name calls, tokens or cost", code="missing-key")


def _iter_conflicts(agent: AgentSection) -> Iterator[tuple[str, str, str]]:
    """Yield each key that conflicts with others, why, and what to do."""
    running = agent.kind == "http" and not agent.launched
    if agent.isolation == "inline" and not agent.is_python:
        yield "isolation", f"inline is for Python agents; this one is {agent.kind}", "use fresh or worker"
    if agent.isolation == "inline" and agent.mcp_config is not None:
        message = "an inline agent runs in Holdfast's own process, where Holdfast cannot intercept its MCP servers"
        yield "mcp_config", message, "use fresh or worker"
    if agent.isolation == "worker" and agent.kind == "command":
        message = "a command is a new process in every trial; worker is for agents that keep running"
        yield "isolation", message, "use fresh"
    if agent.simulate and (agent.kind != "http" or agent.is_started_by_us):
        message = "simulate is for an HTTP agent that is already running: Holdfast can intercept this one's own calls"
        yield "simulate", message, ""
    if agent.gateway and not running:
        message = "gateway is for an HTTP agent that is already running: this one gets its own gateway"
        yield "gateway", message, "remove it"
    if agent.reset_endpoint is not None and agent.is_python:
        message = f"reset_endpoint is for HTTP agents; this one is {agent.kind}"
        yield "reset_endpoint", message, "name a function in agent.reset_function"
    if agent.command is not None and agent.binary is not None:
        yield "binary", "command and binary cannot be combined", ""
    if agent.args and agent.binary is None and not agent.is_python:
        yield "args", "args are for binary", "put them into command"


def _check_endpoint(reader: Reader, agent: AgentSection) -> None:
    at, text = agent.at, agent.endpoint
    where = at.get("endpoint")
    if agent.kind in ("command", "snapshot", "paragon"):
        return
    if not text:
        words = "a URL" if agent.kind == "http" else "module:attribute, as in my_agent:answer"
        hint = f"{words}; a command is type: command" if agent.command else words
        reader.report_missing(at, "endpoint", hint=hint)
    elif agent.is_python and not re.fullmatch(CODE, text):
        hint = "a URL is type: http" if "://" in text else "as in my_agent:answer"
        message = f"expected module:attribute for a {agent.kind} agent, found {text[:60]!r}"
        reader.report(where, message, hint=hint, code="bad-reference")
    elif agent.kind == "http" and re.fullmatch(CODE, text):
        message = f"{text[:60]!r} is a Python object, but the agent's type is http"
        reader.report(where, message, hint="add type: python", code="wrong-agent-type")
    elif agent.kind == "http" and (wrong := find_url_error(text)):
        reader.report(where, f"{wrong}, found {text[:60]!r}")


def _check_template(reader: Reader, agent: AgentSection) -> None:
    """Report a template without a place for the prompt: it would ask the agent nothing, and prove nothing."""
    template = agent.request_template
    if agent.kind != "http" or template is None:
        return
    texts = (template, agent.endpoint or "", *agent.query_params.values())
    places = {name for text in texts for name in re.findall(_PLACE, text)}
    near = get_close_matches("prompt", places - {"prompt"}, 1, 0.8)
    if places and not (near and "prompt" not in places):
        if not places & {"prompt", "messages"} and not agent.at.has("parse_structured_input"):
            message = "the template has neither {prompt} nor {messages}: the agent gets only the fields of a prompt"
            hint = "put {prompt} where the question belongs, or set parse_structured_input: true if prompts are fields"
            reader.warn(agent.at.get("request_template"), message, hint=hint, code="lint-template-prompt")
        return
    hint = f"did you mean {{prompt}} for {{{near[0]}}}?" if near else "put {prompt} where the question belongs"
    message = "the template has no {prompt}: the agent would never get the question"
    reader.report(agent.at.get("request_template"), message, hint=hint, code="never-asked")


def _check_terminal(reader: Reader, agent: AgentSection) -> None:
    """Report a missing place for the prompt: a program at a terminal has no other stdin."""
    if not agent.dialogue or agent.kind != "command" or _get_prompt_channel(agent) not in ("stdin", "messages"):
        return
    if any("{prompt}" in entry.type for entry in agent.dialogue) and _get_prompt_channel(agent) == "stdin":
        return
    message = "nothing types the prompt: a program at a terminal has no other input"
    hint = "put {prompt} into the type of an entry, or set agent.prompt: arg, env or file"
    reader.report(agent.at.get("dialogue"), message, hint=hint, code="never-asked")


def _check_answer_path(reader: Reader, agent: AgentSection) -> None:
    path = agent.response_path
    if path is None or find_names(path).has_references or agent.kind not in ("http", "command"):
        return
    try:
        compile_path(path)
    except BadPath as wrong:
        message = f"expected JSONPath or dots, found {path[:60]!r}: {wrong}"
        reader.report(agent.at.get("response_path"), message, hint=HINT, code="bad-path")


def find_unbuilt_agent(agent: AgentSection, agents: Collection[str], models: Collection[str]) -> Iterator[Unbuilt]:
    """Yield what a run of this agent needs and this release does not have."""
    why = _explain_unknown_agent(agent, agents, models)
    if agent.kind == "paragon":
        why = why or "Agents of type paragon are not in this release."
    if why:
        yield Unbuilt("agent.type", why, agent.at.get_key("type").position)


def _explain_unknown_agent(agent: AgentSection, agents: Collection[str], models: Collection[str]) -> str:
    """Return why an agent hosted elsewhere cannot run here; empty if the file says what replaces it."""
    if agent.kind == "snapshot" and agent.snapshot not in agents:
        return f"The stored agent {agent.snapshot} is not known here: name its folder in agents:."
    if agent.kind == "paragon" and agent.model not in models:
        description = f"The hosted model {agent.model}" if agent.model else "A hosted agent"
        return f"{description} is not known here: set agent.model and describe that model in models:."
    return ""


DESCRIPTION = "holdfast.agent.yaml"
"""The file in the agent's folder with the keys of an `agent:` section; paths are relative to that folder."""
PROGRAM = "run"
"""Without that file: an executable of this name, which gets the prompt on stdin."""


def build_stored_agent(reader: Reader, file: File, folder: Path) -> AgentSpec:
    """Return the agent in a folder, as placed in a sandbox; the spec's own timeout and env apply."""
    agent = build_agent(file.agent)
    name = file.agents.get(file.agent.snapshot or "")
    if file.agent.kind != "snapshot" or name is None:
        return agent
    place = folder / name
    if os.path.isfile(place / DESCRIPTION):
        stored = _read_description(reader, file, place / DESCRIPTION)
    elif os.access(place / PROGRAM, os.X_OK) and os.path.isfile(place / PROGRAM):
        stored = AgentSpec(type="command", binary=PROGRAM)
    else:
        message = f"{name} contains no agent: expected {DESCRIPTION}, or an executable {PROGRAM}"
        reader.report(file.agent.at.get("snapshot"), message, code="no-agent")
        return agent
    timeout = agent.timeout_ms if file.agent.at.has("timeout") else stored.timeout_ms
    return replace(stored, dir=name, timeout_ms=timeout, env={**stored.env, **agent.env}, position=agent.position)


def _read_description(reader: Reader, file: File, path: Path) -> AgentSpec:
    """Return the agent section of the folder's own file; its problems are reported at the agent's name."""
    source = read_file(path)
    root, problems = parse(source.text) if source.problem is None else (None, [source.problem])
    inner = Reader(reader.value_of)
    inner.problems += problems
    section = inner.read_section(AgentSection, root) if root is not None else None
    if isinstance(section, AgentSection):
        report_agent_problems(inner, section)
    report_inner(reader, file.agent.at.get("snapshot"), f"{path.parent.name}/{path.name}", inner.problems)
    return build_agent(section) if isinstance(section, AgentSection) else AgentSpec()
