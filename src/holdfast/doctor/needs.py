"""What a run of this agent needs that can be looked for without starting it: programs, ports, a gateway."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.agents.http.instance import check_free
from holdfast.agents.http.readiness import address_of
from holdfast.agents.placeholders import PORT
from holdfast.doctor.models import place, takes_connections
from holdfast.doctor.probe_site import said_by
from holdfast.errors import AgentUnavailable, UserError
from holdfast.execute.sandbox_backend import interpreter, program_search, usual_environ
from holdfast.folders import own_folder, path_here
from holdfast.http1.client import UpstreamFailed, Upstreams
from holdfast.model.spec import AgentSpec, Spec
from holdfast.planes.handover import place_in
from holdfast.planes.mcp.config import read
from holdfast.processes.startable import SHELL, argv_of, install_hint
from holdfast.reading.program_word import program_calls
from holdfast.report.diagnosis import DoctorFinding
from holdfast.world.agent_mounts import mount
from holdfast.world.boxed_world import SYSTEM, what_is_seen
from holdfast.world.sandbox import system
from holdfast.world.sandbox.sandboxed_program import ProgramLookup

_LOOK_S = 5.0
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SHELL_SIGNS = frozenset("$`(){};&|<>*?~")
_OWN_PORTS = DoctorFinding("agent.endpoint", "ok", "every port of its sandbox is free")
_STANDBY = "start `holdfast gateway` with this spec, and the agent with the variables that it prints"


async def what_is_needed(spec: Spec, agent: AgentSpec, environ: Mapping[str, str]) -> list[DoctorFinding]:
    """A line for each thing."""
    root, whole = Path(spec.path).resolve().parent, {**environ, **agent.env}
    found = []
    if agent.launched:
        if spec.world is None:
            found.append(await _program(agent, root, whole))
        else:
            found.append(boxed_program(spec, agent, root, environ))
        if agent.type == "http":
            found.append(_port(agent) if spec.world is None else _OWN_PORTS)
    elif agent.type == "http":
        if agent.gateway:
            found.append(await _gateway(own_folder(spec.file)))
        found.append(await _running(agent))
    return [*found, *[one async for one in _servers(agent, root, whole)]]


# -- the program ----------------------------------------------------------------------------------
async def _program(agent: AgentSpec, root: Path, environ: Mapping[str, str]) -> DoctorFinding:
    if agent.command is None:
        try:
            return DoctorFinding("agent.binary", "ok", argv_of(agent, root, environ)[0])
        except AgentUnavailable as gone:
            return DoctorFinding("agent.binary", "not", str(gone), gone.hint, 4)
    word = first_word(agent.command)
    if not word:
        return DoctorFinding("agent.command", "unproven", "the shell decides what it runs")
    look = [SHELL, "-c", 'cd "$1" && command -v "$2"', "sh", str(root), word]
    try:
        async with asyncio.timeout(_LOOK_S):
            found = (await said_by(look, environ))[0].strip()
    except TimeoutError:
        return DoctorFinding("agent.command", "unproven", f"the shell did not say within {_LOOK_S:g} s what {word} is")
    if found:
        return DoctorFinding("agent.command", "ok", found)
    fix = (
        install_hint(word)
        + "it is run by sh -c in the spec's folder: check its name, its path, PATH and that it is executable"
    )
    return DoctorFinding("agent.command", "not", f"the shell finds no {word}", fix, 4)


def first_word(command: str) -> str:
    """The program that a shell command begins with; empty where only the shell can tell."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    word = next((word for word in words if not _ASSIGNMENT.match(word)), "")
    return "" if _SHELL_SIGNS.intersection(word) else word


# -- where it listens -----------------------------------------------------------------------------
def _port(agent: AgentSpec) -> DoctorFinding:
    if PORT in agent.endpoint:
        return DoctorFinding("agent.endpoint", "ok", "a free port for each instance")
    try:
        host, port = address_of(agent.endpoint)
        check_free(host, port)
    except AgentUnavailable as taken:
        return DoctorFinding("agent.endpoint", "not", str(taken), taken.hint, 4 if taken.config else 3)
    return DoctorFinding("agent.endpoint", "ok", f"port {port} is free; one trial at a time")


async def _running(agent: AgentSpec) -> DoctorFinding:
    refused = await takes_connections(agent.endpoint)
    if not refused:
        return DoctorFinding("agent.endpoint", "ok", f"{place(agent.endpoint)} takes connections")
    fix = "start the agent, or let Holdfast start it: agent.command"
    return DoctorFinding("agent.endpoint", "not", f"{place(agent.endpoint)}: {refused}", fix, 3)


async def _gateway(folder: Path) -> DoctorFinding:
    """Sends a request to its port: a gateway rejects every request outside of a trial."""
    if not (folder / "gateway.sock").exists() or not (folder / "gateway.json").exists():
        return DoctorFinding("agent.gateway", "not", f"no gateway runs in {path_here(folder)}", _STANDBY, 3)
    held, client = place_in(folder), Upstreams()
    try:
        reply = await client.send("GET", f"http://{held.host}:{held.port}/{held.token}/openai/v1/models", connect_s=2)
        said = await reply.read(10_000)
    except UpstreamFailed as failed:
        why = f"the gateway at {held.host}:{held.port} is gone: {failed}"
        return DoctorFinding("agent.gateway", "not", why, _STANDBY, 3)
    finally:
        await client.close()
    if reply.status != 503 or b"holdfast" not in said:
        why = f"something else answers at port {held.port}: status {reply.status}"
        return DoctorFinding("agent.gateway", "not", why, _STANDBY, 3)
    return DoctorFinding("agent.gateway", "ok", f"a gateway is ready at port {held.port}")


# -- MCP servers ----------------------------------------------------------------------------------
async def _servers(agent: AgentSpec, root: Path, environ: Mapping[str, str]) -> AsyncIterator[DoctorFinding]:
    try:
        entries = dict(_entries(agent, root))
    except UserError as wrong:
        yield DoctorFinding("agent.mcp_config", "not", str(wrong), wrong.hint or "fix the file", 4)
        return
    for name, entry in entries.items():
        yield await _server(f"mcp server {name}", entry, root, environ)


def _entries(agent: AgentSpec, root: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The servers of the configuration; the run rejects an entry that is not a map."""
    given = agent.mcp_config
    config = read(root / given) if isinstance(given, str) else given or {}
    for section in ("mcpServers", "servers"):
        listed = config.get(section)
        if isinstance(listed, dict):
            yield from ((name, entry) for name, entry in listed.items() if isinstance(entry, dict))


async def _server(name: str, entry: Mapping[str, Any], root: Path, environ: Mapping[str, str]) -> DoctorFinding:
    command = entry.get("command")
    if isinstance(command, str):
        own = entry.get("env")
        path = {**environ, **(own if isinstance(own, dict) else {})}.get("PATH")
        found = shutil.which(command, path=path) or shutil.which(str(root / command))
        if found:
            return DoctorFinding(name, "ok", found)
        return DoctorFinding(name, "not", f"there is no program {command}", "install it, or fix its path", 4)
    url = next((entry[key] for key in ("url", "httpUrl", "serverUrl") if isinstance(entry.get(key), str)), "")
    refused = await takes_connections(url)
    if refused:
        return DoctorFinding(name, "not", f"{place(url)}: {refused}", "start that server, or fix its address", 3)
    return DoctorFinding(name, "ok", f"{place(url)} takes connections")


# -- boxed program ---------------------------------------------------------------------------------
_NOWHERE = "/proc/self/fdinfo/none"
"""What is not shown is not there."""
_BUILT_IN = frozenset(
    (".", ":", "[", "case", "cd", "eval", "exit", "export", "for", "if", "read", "set", "trap", "while")
)


def boxed_program(spec: Spec, agent: AgentSpec, root: Path, environ: Mapping[str, str]) -> DoctorFinding:
    """Where it is, and what of this machine is shown for it; else what the sandbox sees, and what to write."""
    key = "agent.binary" if agent.command is None else "agent.command"
    try:
        seen = mount(agent, root, program_search(spec, agent, root, environ))
    except AgentUnavailable as refused:
        return DoctorFinding("agent.dir", "not", str(refused), refused.hint, 4)
    word = _word(seen.agent)
    if not word or set("$`*?{}").intersection(word):
        return DoctorFinding(key, "unproven", "the shell decides what it runs")
    path = {**usual_environ(seen.programs.folders), **agent.env}["PATH"]
    shown = {**interpreter(), **seen.programs.visible, **seen.mounts.visible}
    found = _found(word, path, _inside(shown, seen.programs.links))
    if found or (agent.command is not None and word in _BUILT_IN):
        return DoctorFinding(key, "ok", "; ".join([found or word, *seen.programs.notes()]))
    fix = install_hint(word) + what_is_seen(path, (*SYSTEM, *sorted(shown), "/workspace"))
    return DoctorFinding(key, "not", f"a sandbox finds no {word}", fix, 4)


def _word(agent: AgentSpec) -> str:
    if agent.command is None:
        return agent.binary or ""
    return next((call.program for call in program_calls(agent.command)), "")


def _inside(shown: Mapping[str, Path], links: Mapping[str, str]) -> ProgramLookup:
    there = system.shared()
    same = {path: path for path in (*there.folders, *there.links, *links)}
    return ProgramLookup({"/": _NOWHERE, **same, **{path: str(real) for path, real in shown.items()}})


def _found(word: str, path: str, inside: ProgramLookup) -> str:
    """Where it is inside; empty if it cannot be executed there. What lies in the workspace is not known yet."""
    if "/" in word and not os.path.isabs(word):
        return f"{word} in the workspace"
    places = [word] if "/" in word else [os.path.join(folder, word) for folder in path.split(":")]
    return next((place for place in places if inside.refused(place, path, "/workspace") == 0), "")
