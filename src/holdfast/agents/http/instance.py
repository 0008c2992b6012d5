"""One started copy of an HTTP agent: its process, where it runs, and its client."""

from __future__ import annotations

import errno
import os
import re
import socket
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec.structs import replace

from holdfast.agents.http.agent import HttpAgent
from holdfast.agents.http.readiness import await_ready
from holdfast.agents.placeholders import fill_mcp_config, fill_port
from holdfast.errors import AgentLost, AgentUnavailable, HarnessError
from holdfast.model.observation import Answer, EndingKind
from holdfast.model.spec import AgentSpec
from holdfast.model.task import Task
from holdfast.processes.pipes import Pipes, Tail
from holdfast.processes.program import describe_end, end_on_exit
from holdfast.processes.startable import BEGIN
from holdfast.protocols.sandbox import Started
from holdfast.protocols.world import Place, ReachablePort, World

FIRST_PORT, PORT_COUNT = 20_000, 12_000
"""A range below Linux's ephemeral ports, from which any connection could take a port before the agent does."""

_PORT_HINT = (
    "stop the program that uses it, or write {port} in agent.endpoint: Holdfast then picks a free port, puts it into "
    "agent.command and sets PORT"
)


class Ports:
    """Hands out ports in rotation: a port that was just used may still be blocked."""

    def __init__(self) -> None:
        self._next = os.getpid() * 37 % PORT_COUNT  # concurrent runs start at different ports

    def pick_port(self) -> int:
        """Return a port that nobody listens on now."""
        for _ in range(PORT_COUNT):
            port = FIRST_PORT + self._next
            self._next = (self._next + 1) % PORT_COUNT
            if _is_free(port):
                return port
        raise HarnessError(f"no free port between {FIRST_PORT} and {FIRST_PORT + PORT_COUNT}", code="port-taken")


def check_port_free(host: str, port: int) -> None:
    """Raise AgentUnavailable if something already listens on the agent's port."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return  # the agent's own start will show it
    for family, kind, protocol, _, address in addresses:
        with socket.socket(family, kind, protocol) as probe:
            # Without this option, connections that an earlier agent has just closed would look like a listener.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(address)
            except OSError as refused:
                if refused.errno == errno.EADDRINUSE:
                    text = f"port {port} is already taken, so the agent cannot be started on it"
                    raise AgentUnavailable(text, code="port-taken", hint=_PORT_HINT) from refused


def _is_free(port: int) -> bool:
    """Return whether a program can listen there on all addresses, without SO_REUSEADDR."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


NOTICE_S = 0.5
"""Seconds by which a lost connection may precede the end of the process."""
UNUSABLE_ENDINGS: frozenset[EndingKind] = frozenset(("timeout", "crashed", "out_of_memory", "closed"))
"""Endings after which an instance is not reused."""


class Instance:
    """A started copy that was ready. `end` it after use."""

    def __init__(
        self, agent: AgentSpec, place: Place, program: Started, pipes: Pipes, printed: Tail, *, for_trial: bool
    ) -> None:
        self._agent = agent
        self._place = place
        self._program = program
        self._pipes = pipes
        self._printed = printed
        self._for_trial = for_trial
        self._http: HttpAgent
        self._parts: AsyncExitStack
        self.is_unusable = False
        """Whether its last trial left it unusable for the next one."""

    @classmethod
    async def start(
        cls, written: AgentSpec, port: int, place: Place, root: Path, printed: Tail | None = None
    ) -> Instance:
        """Start a copy on this port and wait until it is ready; raise AgentUnavailable if it does not become ready.

        Ending the instance closes the place; a failed start closes it immediately. `printed` stores the output of one
        that is started for a single trial: all of it belongs to that trial.
        """
        async with AsyncExitStack() as parts:
            parts.push_async_callback(place.close)
            agent = fill_port(place.map_agent_paths(written), port)
            with_port = {name: value for name, value in agent.env.items() if value != written.env[name]}
            env = {**BEGIN, **place.environ, **with_port, "PORT": str(port)}
            output = printed or Tail()
            pipes = Pipes(b"", output, output)
            parts.callback(pipes.close)
            program = await place.start(place.build_argv(fill_mcp_config(agent, env), env), env, pipes.stdio)
            await parts.enter_async_context(end_on_exit(program))
            pipes.close_child_ends()
            self = cls(agent, place, program, pipes, output, for_trial=printed is not None)
            forward = await place.forward(port)
            if forward is not None:
                parts.push_async_callback(forward.close)
            self._http = await self._await_ready(port, forward, root)
            parts.push_async_callback(self._http.close)
            self._parts = parts.pop_all()
        return self

    async def _await_ready(self, port: int, forward: ReachablePort | None, root: Path) -> HttpAgent:
        """Wait until it is ready; return its client."""
        if forward is None:
            agent, can_connect = self._agent, None
        else:
            agent = _replace_port(self._agent, port, forward.port)

            async def can_connect(host: str, wanted: int) -> bool:
                return await forward.is_accepting(port if wanted == forward.port else wanted)

        await await_ready(agent, self._program, self._pipes, self._printed, self._place, can_connect)
        return await HttpAgent.open(agent, limit=1, root=root, describe_end=self._describe_end)

    @property
    def alive(self) -> bool:
        return not self._program.ended

    async def perform(self, task: Task, world: World) -> Answer:
        """Run one trial: reset the agent, if the spec names a reset, then ask turn after turn."""
        await self._http.reset(world)
        if not self._for_trial:
            self._pipes.drain()
            self._printed.restart()
        self._printed.watch = world.on_output
        with self._place.serve_trial(world.context):
            answer = await self._http.ask(task, world)
        self._pipes.drain()
        self._printed.watch = None
        if self._program.lost:
            raise AgentLost("Holdfast lost track of the agent's process")
        self.is_unusable = any(turn.ending in UNUSABLE_ENDINGS for turn in answer.turns)
        notes = (*answer.notes, *self._printed.notes)
        return Answer(answer.turns, output=self._printed.text, notes=notes)

    async def end(self, grace_s: float | None = None) -> tuple[str, ...]:
        """End the instance; return notes for the reader."""
        if grace_s is not None:
            await self._program.end(grace_s)
        await self._parts.aclose()
        return self._program.notes

    async def _describe_end(self) -> tuple[EndingKind, str]:
        """Return how an agent ended that was ready before and now gave no answer or no connection."""
        if await self._program.wait_for_end(NOTICE_S):
            if self._program.out_of_memory:
                return "out_of_memory", f"it {self._program.out_of_memory}"
            last_error = f": {self._printed.error_line[:200]}" if self._printed.error_line else ""
            return "crashed", f"its process {describe_end(self._program.status)}{last_error}"
        return "closed", "its process is running but no longer accepts connections"


def _replace_port(agent: AgentSpec, port: int, forwarded: int) -> AgentSpec:
    """Return the section with the forwarded port in place of the agent's own."""

    def move_url(url: str) -> str:
        return str(forwarded) if url == str(port) else re.sub(rf"(//[^/]*):{port}\b", rf"\1:{forwarded}", url)

    moved = agent.map_texts(move_url, "endpoint", "ready", "reset_endpoint")
    if moved.endpoint == agent.endpoint:  # the port was left out
        moved = replace(moved, endpoint=re.sub(r"^(https?://[^/]+)", rf"\1:{forwarded}", agent.endpoint))
    return moved
