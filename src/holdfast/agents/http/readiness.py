"""Waits until a started HTTP agent is ready: a URL answers, a port accepts connections, or a line is printed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from holdfast.agents.http.client import HttpClient
from holdfast.agents.http.request import HttpRequest, parse_endpoint, read_url
from holdfast.errors import AgentLost, AgentMisconfigured, AgentUnavailable
from holdfast.model.spec import AgentSpec
from holdfast.processes.pipes import Pipes, Tail
from holdfast.processes.program import describe_end
from holdfast.processes.startable import NOT_RUN, make_not_run_error
from holdfast.protocols.sandbox import Started
from holdfast.protocols.world import Place

READY_S = 60.0
"""Maximum time for an agent to become ready: it may load models, but a run must not wait forever."""
PROBE_S = 2.0
"""Timeout of one probe of a URL or port."""
LINE_LIMIT = 64_000
"""Maximum number of bytes of one line that are searched."""
SEARCH_S = 0.5
"""Time limit of a pattern on one line."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.003, 0.1

Probe: TypeAlias = Callable[[], Awaitable[bool]]
Accepts: TypeAlias = Callable[[str, int], Awaitable[bool]]
"""Whether something accepts connections there."""


class OutOfMemoryAtStart(AgentUnavailable):
    """The agent exceeded its memory limit before it was ready."""


async def await_ready(
    agent: AgentSpec, program: Started, pipes: Pipes, printed: Tail, place: Place, accepts: Accepts | None = None
) -> None:
    """Return when the agent is ready; raise AgentUnavailable with its output if it ends first or is too slow.

    `place` is where it runs. `accepts` tests a port that is not one of this machine's.
    """
    # Two things are awaited together: the probe, and the end of the program. An agent that ends is reported
    # immediately, with what it printed, and not as a timeout a minute later. `ready` does not count for a program that
    # has ended: something else may listen on its port.
    condition, probe = _make_probe(agent, printed, accepts or _can_connect)
    ready = asyncio.ensure_future(_poll(probe))
    ended = asyncio.ensure_future(program.wait_for_end(READY_S))
    try:
        await asyncio.wait((ready, ended), timeout=READY_S, return_when=asyncio.FIRST_COMPLETED)
        if ready.done() and not program.ended:
            ready.result()
            return
    finally:
        printed.watch = None
        for task in (ready, ended):
            task.cancel()
        await asyncio.gather(ready, ended, return_exceptions=True)
    pipes.drain()
    raise _make_not_ready_error(agent, program, condition, printed, place)


def _make_not_ready_error(agent: AgentSpec, program: Started, condition: str, printed: Tail, place: Place) -> Exception:
    if program.lost:
        return AgentLost("the launch host died while the agent started")
    if program.out_of_memory:
        message = f"it {program.out_of_memory} before it was ready"
        return OutOfMemoryAtStart(message, code="agent-not-ready", hint="raise resources.memory")
    if program.ended and program.status in NOT_RUN and agent.command is not None:
        return make_not_run_error(agent, printed.last_line, place.sees)
    if program.ended:
        message = f"the agent {describe_end(program.status)} before it was ready"
        hint = f"{place.own_files}; PORT is the port it must listen on"
    else:
        message = f"the agent was not ready within {READY_S:g} s: {condition}"
        hint = "check agent.endpoint and agent.ready: a URL, port, or a text that it prints when it is ready"
    last_words = f" (last line: {printed.last_line[:200]})" if printed.last_line else ""
    key = "agent.command" if agent.command is not None else "agent.binary"
    return AgentMisconfigured(message + last_words, code="agent-not-ready", hint=hint, body=printed.text, key=key)


async def _poll(probe: Probe) -> None:
    pause_s = _FIRST_PAUSE_S
    while not await probe():
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)


def _make_probe(agent: AgentSpec, printed: Tail, accepts: Accepts) -> tuple[str, Probe]:
    """Return the condition that is waited for, in words, and a function that tests it."""
    ready = (agent.ready or "port").strip()
    if ready.startswith(("http://", "https://")):
        return f"{ready} never answered with a status below 500", lambda: _is_answering(ready)
    if ready == "port" or ready.isdecimal():
        host, port = parse_address(agent.endpoint)
        port = int(ready) if ready.isdecimal() else port
        return f"nothing accepts connections at {host}:{port}", lambda: accepts(host, port)
    lines = _Lines(ready)
    printed.watch = lines.add
    return f"no line of its output matches {ready!r}", lines.matched.wait


def parse_address(endpoint: str) -> tuple[str, int]:
    """Return the host and port of a URL; raise AgentUnavailable (config) if it has none."""
    place = parse_endpoint(endpoint).endpoint
    return place.host, place.port


async def _can_connect(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(PROBE_S):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    own, peer = writer.get_extra_info("sockname"), writer.get_extra_info("peername")
    writer.transport.abort()
    return bool(own[:2] != peer[:2])  # a connection to an ephemeral port can connect to itself


async def _is_answering(url: str) -> bool:
    try:
        where = read_url(url)
    except ValueError as wrong:
        raise AgentMisconfigured(f"agent.ready is not an http or https URL: {url!r}") from wrong
    wire = HttpClient(where, {}, timeout_ms=round(PROBE_S * 1000), limit=1, keep=False)
    try:
        exchange = await wire.send(HttpRequest("GET", where.endpoint.target))
    except AgentUnavailable as gone:
        if gone.config:
            raise
        return False
    finally:
        await wire.close()
    return exchange.status is not None and exchange.status < 500


class _Lines:
    """Searches each printed line for a text or pattern."""

    def __init__(self, wanted: str) -> None:
        import regex

        self._wanted = wanted
        try:
            self._pattern = regex.compile(wanted)
        except regex.error:
            self._pattern = None  # not a valid pattern: search for the text itself
        self._line = bytearray()
        self.matched = asyncio.Event()

    def add(self, data: bytes) -> None:
        # The last line counts before its line end arrives: a server may print "ready" without one.
        *complete, rest = (bytes(self._line) + data).split(b"\n")
        for line in [*complete, rest]:
            if self.matched.is_set():
                return
            if self._is_match(line[:LINE_LIMIT].decode("utf-8", "replace")):
                self.matched.set()
        self._line = bytearray(rest[:LINE_LIMIT])

    def _is_match(self, line: str) -> bool:
        if self._wanted in line:
            return True
        try:
            return self._pattern is not None and self._pattern.search(line, timeout=SEARCH_S) is not None
        except TimeoutError:
            return False
