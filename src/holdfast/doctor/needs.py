"""Checks what a run of this agent needs, without starting it: programs, ports, a gateway, MCP servers."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.agents.http.instance import check_port_free
from holdfast.agents.http.readiness import parse_address
from holdfast.agents.placeholders import PORT
from holdfast.doctor.models import check_server
from holdfast.doctor.probe_site import read_output
from holdfast.errors import AgentUnavailable, UserError
from holdfast.execute.boxed_worlds import build_environ, list_interpreter_paths, make_program_search
from holdfast.folders import format_path, get_own_folder
from holdfast.http1.client import UpstreamFailed, Upstreams
from holdfast.model.spec import AgentSpec, Spec
from holdfast.planes.handover import load_address
from holdfast.planes.mcp.config import read_config
from holdfast.processes.startable import SHELL, build_argv, make_install_hint
from holdfast.reading.program_word import find_program_calls
from holdfast.report.terminal.diagnosis import DoctorFinding
from holdfast.world.agent_mounts import mount
from holdfast.world.boxed_world import SYSTEM, describe_search
from holdfast.world.sandbox import system
from holdfast.world.sandbox.sandboxed_program import ProgramLookup

_LOOK_S = 5.0
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SHELL_SIGNS = frozenset("$`(){};&|<>*?~")
_OWN_PORTS = DoctorFinding("agent.endpoint", "ok", "port-free", "every port of its sandbox is free")
_STANDBY = "start `holdfast gateway` with this spec, then start the agent with the variables it prints"


async def check_needs(spec: Spec, agent: AgentSpec, environ: Mapping[str, str]) -> list[DoctorFinding]:
    """Return a finding for each program, port and server that the agent needs."""
    root, variables = Path(spec.path).resolve().parent, {**environ, **agent.env}
    findings = []
    if agent.launched:
        if spec.world is None:
            findings.append(await _check_program(agent, root, variables))
        else:
            findings.append(check_boxed_program(spec, agent, root, environ))
        if agent.type == "http":
            findings.append(_check_port(agent) if spec.world is None else _OWN_PORTS)
    elif agent.type == "http":
        if agent.gateway:
            findings.append(await _check_gateway(get_own_folder(spec.file)))
        fix = "start the agent, or let Holdfast start it: agent.command"
        findings.append(await check_server("agent.endpoint", agent.endpoint, fix))
    return [*findings, *[one async for one in _check_servers(agent, root, variables)]]


# -- the program ----------------------------------------------------------------------------------
async def _check_program(agent: AgentSpec, root: Path, environ: Mapping[str, str]) -> DoctorFinding:
    if agent.command is None:
        try:
            return DoctorFinding("agent.binary", "ok", "program-found", build_argv(agent, root, environ)[0])
        except AgentUnavailable as gone:
            return DoctorFinding("agent.binary", "not", gone.code, str(gone), gone.hint, 4)
    word = find_program_word(agent.command)
    if not word:
        return DoctorFinding("agent.command", "unproven", "program-unknown", "the shell decides what it runs")
    look = [SHELL, "-c", 'cd "$1" && command -v "$2"', "sh", str(root), word]
    try:
        async with asyncio.timeout(_LOOK_S):
            program = (await read_output(look, environ))[0].strip()
    except TimeoutError:
        why = f"the shell did not find {word} within {_LOOK_S:g} s"
        return DoctorFinding("agent.command", "unproven", "program-unknown", why)
    if program:
        return DoctorFinding("agent.command", "ok", "program-found", program)
    fix = (
        make_install_hint(word)
        + "sh -c runs it in the spec's folder: check its name, its path, PATH and that it is executable"
    )
    return DoctorFinding("agent.command", "not", "program-missing", f"the shell cannot find {word}", fix, 4)


def find_program_word(command: str) -> str:
    """Return the program that a shell command starts with; empty if only the shell can tell."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    word = next((word for word in words if not _ASSIGNMENT.match(word)), "")
    return "" if _SHELL_SIGNS.intersection(word) else word


# -- where it listens -----------------------------------------------------------------------------
def _check_port(agent: AgentSpec) -> DoctorFinding:
    if PORT in agent.endpoint:
        return DoctorFinding("agent.endpoint", "ok", "port-free", "a free port for each instance")
    try:
        host, port = parse_address(agent.endpoint)
        check_port_free(host, port)
    except AgentUnavailable as unusable:
        status = 4 if unusable.config else 3
        return DoctorFinding("agent.endpoint", "not", unusable.code, str(unusable), unusable.hint, status)
    return DoctorFinding("agent.endpoint", "ok", "port-free", f"port {port} is free; one trial at a time")


async def _check_gateway(folder: Path) -> DoctorFinding:
    """Send a request to the gateway's port; a gateway rejects every request outside a trial."""
    if not (folder / "gateway.sock").exists() or not (folder / "gateway.json").exists():
        why = f"no gateway is running in {format_path(folder)}"
        return DoctorFinding("agent.gateway", "not", "gateway-missing", why, _STANDBY, 3)
    held, client = load_address(folder), Upstreams()
    try:
        reply = await client.send("GET", f"http://{held.host}:{held.port}/{held.token}/openai/v1/models", connect_s=2)
        body = await reply.read(10_000)
    except UpstreamFailed as failed:
        why = f"the gateway at {held.host}:{held.port} does not answer: {failed}"
        return DoctorFinding("agent.gateway", "not", "gateway-missing", why, _STANDBY, 3)
    finally:
        await client.close()
    if reply.status != 503 or b"holdfast" not in body:
        why = f"another program answers on port {held.port}: status {reply.status}"
        return DoctorFinding("agent.gateway", "not", "gateway-missing", why, _STANDBY, 3)
    return DoctorFinding("agent.gateway", "ok", "gateway-ready", f"a gateway is ready on port {held.port}")


# -- MCP servers ----------------------------------------------------------------------------------
async def _check_servers(agent: AgentSpec, root: Path, environ: Mapping[str, str]) -> AsyncIterator[DoctorFinding]:
    try:
        entries = dict(_list_servers(agent, root))
    except UserError as wrong:
        yield DoctorFinding("agent.mcp_config", "not", wrong.code, str(wrong), wrong.hint or "fix the file", 4)
        return
    for name, entry in entries.items():
        yield await _check_server(f"mcp server {name}", entry, root, environ)


def _list_servers(agent: AgentSpec, root: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the servers of the configuration; a run rejects entries that are not maps."""
    source = agent.mcp_config
    config = read_config(root / source) if isinstance(source, str) else source or {}
    for section in ("mcpServers", "servers"):
        listed = config.get(section)
        if isinstance(listed, dict):
            yield from ((name, entry) for name, entry in listed.items() if isinstance(entry, dict))


async def _check_server(name: str, entry: Mapping[str, Any], root: Path, environ: Mapping[str, str]) -> DoctorFinding:
    command = entry.get("command")
    if isinstance(command, str):
        own = entry.get("env")
        path = {**environ, **(own if isinstance(own, dict) else {})}.get("PATH")
        program = shutil.which(command, path=path) or shutil.which(str(root / command))
        if program:
            return DoctorFinding(name, "ok", "program-found", program)
        fix = "install it, or fix its path"
        return DoctorFinding(name, "not", "program-missing", f"{command} is not installed", fix, 4)
    url = next((entry[key] for key in ("url", "httpUrl", "serverUrl") if isinstance(entry.get(key), str)), "")
    return await check_server(name, url, "start that server, or fix its address")


# -- boxed program ---------------------------------------------------------------------------------
_NOWHERE = "/proc/self/fdinfo/none"
"""A path that does not exist: the sandbox hides every path that is not mounted."""
_BUILT_IN = frozenset(
    (".", ":", "[", "case", "cd", "eval", "exit", "export", "for", "if", "read", "set", "trap", "while")
)


def check_boxed_program(spec: Spec, agent: AgentSpec, root: Path, environ: Mapping[str, str]) -> DoctorFinding:
    """Look for the agent's program in the sandbox's view of this machine."""
    key = "agent.binary" if agent.command is None else "agent.command"
    try:
        mounted = mount(agent, root, make_program_search(spec, agent, root, environ))
    except AgentUnavailable as refused:
        return DoctorFinding("agent.dir", "not", refused.code, str(refused), refused.hint, 4)
    word = mounted.agent.binary or ""
    if mounted.agent.command is not None:
        word = next((call.program for call in find_program_calls(mounted.agent.command)), "")
    if not word or set("$`*?{}").intersection(word):
        return DoctorFinding(key, "unproven", "program-unknown", "the shell decides what it runs")
    path = {**build_environ(mounted.programs.folders), **agent.env}["PATH"]
    visible = {**list_interpreter_paths(), **mounted.programs.visible, **mounted.mounts.visible}
    # Only paths are looked up: no sandbox is opened, so this also works where none can be.
    shared = system.find_shared()
    same = {path: path for path in (*shared.folders, *shared.links, *mounted.programs.links)}
    inside = ProgramLookup({"/": _NOWHERE, **same, **{path: str(real) for path, real in visible.items()}})
    program = _find_inside(word, path, inside)
    if program or (agent.command is not None and word in _BUILT_IN):
        return DoctorFinding(key, "ok", "program-found", "; ".join([program or word, *mounted.programs.list_notes()]))
    fix = make_install_hint(word) + describe_search(path, (*SYSTEM, *sorted(visible), "/workspace"))
    return DoctorFinding(key, "not", "program-missing", f"the sandbox does not have {word}", fix, 4)


def _find_inside(word: str, path: str, inside: ProgramLookup) -> str:
    """Return the program's path in the sandbox; empty if it cannot be executed there.

    The workspace does not exist yet, so a relative path is taken on trust.
    """
    if "/" in word and not os.path.isabs(word):
        return f"{word} in the workspace"
    places = [word] if "/" in word else [os.path.join(folder, word) for folder in path.split(":")]
    return next((place for place in places if inside.find_refusal(place, path, "/workspace") == 0), "")
