"""An agent stored in a folder: `agent: {type: snapshot, snapshot: NAME}` with `agents: {NAME: ./dir}`."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec.structs import replace

from holdfast.model.spec import AgentSpec
from holdfast.reading.file import read_file
from holdfast.reading.reader import Reader
from holdfast.reading.tree import parse
from holdfast.spec.agent import build_agent, report_agent_problems
from holdfast.spec.explain import report_inner
from holdfast.spec.sections.agent import AgentSection
from holdfast.spec.sections.file import File

DESCRIPTION = "holdfast.agent.yaml"
"""The file in the agent's folder with the keys of an `agent:` section; paths are relative to that folder."""
PROGRAM = "run"
"""Without that file: an executable of this name, which gets the prompt on stdin."""


def build_stored_agent(reader: Reader, file: File, folder: Path) -> AgentSpec:
    """Return the agent in a folder, as placed in a sandbox; the spec's own timeout and env apply."""
    own = build_agent(file.agent)
    name = file.agents.get(file.agent.snapshot or "")
    if file.agent.kind != "snapshot" or name is None:
        return own
    place = folder / name
    if os.path.isfile(place / DESCRIPTION):
        held = _read_description(reader, file, place / DESCRIPTION)
    elif os.access(place / PROGRAM, os.X_OK) and os.path.isfile(place / PROGRAM):
        held = AgentSpec(type="command", binary=PROGRAM)
    else:
        message = f"{name} holds no agent: expected {DESCRIPTION}, or an executable {PROGRAM}"
        reader.report(file.agent.at.get("snapshot"), message, code="no-agent")
        return own
    timeout = own.timeout_ms if file.agent.at.has("timeout") else held.timeout_ms
    return replace(held, dir=name, timeout_ms=timeout, env={**held.env, **own.env}, position=own.position)


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
