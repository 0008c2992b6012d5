"""Holdfast's end of a host: starts it, sends it trials, collects the results, and kills what hangs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import TypeAlias

import msgspec

from holdfast.agents.conversation import RESET_S
from holdfast.agents.python import host_protocol as protocol
from holdfast.agents.python.hosted_trial import HostedTrial
from holdfast.errors import AgentLost, AgentMisconfigured, AgentUnavailable, HarnessError
from holdfast.model.codec import encode
from holdfast.model.observation import Answer
from holdfast.model.task import Task
from holdfast.processes.leftovers import GRACE_S, describe_survivors, end_marked, kill_group
from holdfast.processes.pipes import read_now
from holdfast.protocols.trial import TrialContext

START_S = 60.0
"""Maximum time for a forked process to start: long, because a busy machine may be slow."""
HOST_DIED = "agent-host-died"
"""The error code of each trial that ran when its host died."""
MARK = "HOLDFAST_HOST"
"""A variable in the environment of a host and its children, to find the processes it leaves behind."""
HASHING = {"PYTHONHASHSEED": "0"}
"""Set unless the user sets another: the order of a set must not change a call, and with it the random draws."""

OnStarted: TypeAlias = Callable[[int], None]

_notices: msgspec.json.Decoder[protocol.Notice] = msgspec.json.Decoder(protocol.Notice)


class PythonHost:
    """A host process and the trials it runs."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        control: socket.socket,
        ready: protocol.Ready,
        setup: protocol.HostSetup,
        mark: str,
    ) -> None:
        self.process = process
        self.ready = ready
        self._control = control
        self._forks = setup.mode == "fork"
        self.alone = False
        """Whether it runs only one trial: if it dies, that trial caused it."""
        self._has_reset = setup.agent.reset_function is not None
        self._timeout_s = setup.agent.timeout_ms / 1000
        self._mark = mark
        self._loop = asyncio.get_running_loop()
        self._tickets = 0
        self._starting: dict[int, tuple[HostedTrial, OnStarted | None]] = {}
        """Trials whose process is not known yet, by ticket."""
        self._running: dict[int, HostedTrial] = {}
        """The other trials, by process."""
        self._frames = protocol.MessageFrames(self._handle_notice)
        self._loop.add_reader(control.fileno(), self._read_control)

    @classmethod
    async def start(cls, setup: protocol.HostSetup, environ: Mapping[str, str]) -> PythonHost:
        """Start the interpreter and wait until the agent is imported."""
        ours, theirs = socket.socketpair()
        mark = os.urandom(8).hex()
        try:
            process = _spawn(theirs.fileno(), setup.root, {**HASHING, **environ, MARK: mark})
        except OSError as broken:
            ours.close()
            raise AgentUnavailable(
                f"no process could be started for the agent: {broken}", code="agent-not-started"
            ) from broken
        finally:
            theirs.close()
        ours.setblocking(False)
        try:
            return cls(process, ours, await _await_import(ours, setup), setup, mark)
        except BaseException:
            ours.close()
            _end(process, mark)
            raise

    async def perform(self, context: TrialContext, task: Task, begun: OnStarted | None = None) -> Answer:
        """Run one trial until it ends or is stopped. `begun` is called with its process as soon as that is known."""
        hosted = HostedTrial(context, task)
        self._tickets += 1
        ticket = self._tickets
        self._starting[ticket] = hosted, begun
        try:
            await self._send_order(ticket, hosted.pipes.child_ends)
            await hosted.begin()
            await self._watch(hosted)
            hosted.pipes.drain()
        finally:
            self._starting.pop(ticket, None)  # a process that is reported from now on is killed then
            if not hosted.exited:  # Holdfast was interrupted
                kill_group(hosted.pid, signal.SIGKILL)
            hosted.pipes.close()
        return hosted.build_answer(self._timeout_s)

    async def _send_order(self, ticket: int, fds: Sequence[int]) -> None:
        while True:
            try:
                socket.send_fds(self._control, [ticket.to_bytes(8, "big")], fds)
            except BlockingIOError:  # very many concurrent trials
                await asyncio.sleep(0.001)
            except OSError as broken:
                raise AgentLost(f"the agent's host process is gone: {broken}") from broken
            else:
                return

    async def _watch(self, hosted: HostedTrial) -> None:
        """Wait for the end, turn by turn; stop a turn that takes too long."""
        await self._await_start(hosted)
        await hosted.run_turns(lambda: self._timeout_s)
        if hosted.late:
            await self._stop(hosted)
        elif not await hosted.wait(lambda: hosted.exited, GRACE_S if hosted.all_turns_ended else self._timeout_s):
            hosted.notes.append("its process did not exit after answering and was stopped")
            await self._stop(hosted)

    async def _await_start(self, hosted: HostedTrial) -> None:
        limit_s = RESET_S if self._has_reset else START_S
        if await hosted.wait(lambda: hosted.turns_begun > 0 or bool(hosted.error), limit_s):
            return
        await self._stop(hosted)
        why = "reset did not finish" if self._has_reset else "the agent's process did not start"
        raise HarnessError(f"{why} within {limit_s:g} s", code="agent-not-started")

    async def _stop(self, hosted: HostedTrial) -> None:
        """Send SIGTERM to the trial's group, wait a grace period, then send SIGKILL."""
        # The agent gets the chance to clean up, but not the last word: its group is killed if it is still there.
        for number in (signal.SIGTERM, signal.SIGKILL):
            kill_group(hosted.pid, number)
            if await hosted.wait(lambda: hosted.exited, GRACE_S):
                return
        raise HarnessError("the agent's process could not be ended", code="agent-not-ended")

    def _read_control(self) -> None:
        data = read_now(self._control.fileno())
        if data:
            self._frames.feed(data)
        elif data is not None:
            self._on_lost()

    def _handle_notice(self, data: bytes) -> None:
        try:
            notice = _notices.decode(data)
        except msgspec.DecodeError:  # the agent has tampered with the process that holds it
            self._on_lost()
            return
        if isinstance(notice, protocol.ChildExited):
            hosted = self._running.pop(notice.pid, None)
            if hosted is not None:  # otherwise it died before its trial
                hosted.notes.extend(describe_survivors(notice.survivors))
                hosted.finish(notice.status)
            return
        hosted, begun = self._starting.pop(notice.ticket, (None, None))
        if isinstance(notice, protocol.ForkRefused):
            if hosted is not None:
                hosted.fail(f"no process could be started for the trial: {notice.why}", "no-process")
                hosted.finish(None)
        elif hosted is None:
            kill_group(notice.pid, signal.SIGKILL)
        else:
            hosted.pid = notice.pid
            self._running[notice.pid] = hosted
            if begun is not None:
                begun(notice.pid)

    def _on_lost(self) -> None:
        """Handle the loss of the host.

        In place mode the agent itself ended it; otherwise any trial, or none, may have.
        """
        self._loop.remove_reader(self._control.fileno())
        if self.process.poll() is None:
            kill_group(self.process.pid, signal.SIGKILL)
        code = self.process.wait()
        for hosted in (*(hosted for hosted, _ in self._starting.values()), *self._running.values()):
            if self._forks and not self.alone and not hosted.exited:
                hosted.fail("the agent's host process died", HOST_DIED)
            hosted.finish(-code if code < 0 else code << 8)
        self._starting.clear()
        self._running.clear()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def idle(self) -> bool:
        """Whether it is alive and runs no trial."""
        return self.alive and not self._starting and not self._running

    def close(self) -> None:
        """End the host and everything it runs."""
        self._loop.remove_reader(self._control.fileno())
        self._control.close()
        if self._forks:  # the host cleans up when its control socket closes
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(GRACE_S)
        _end(self.process, self._mark, tidies=self._forks)


def _spawn(control: int, root: str, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603  # our own program; starting it takes 1 ms
        [sys.executable, "-P", "-c", "from holdfast.agents.python.host import main; main()", str(control)],
        pass_fds=[control],
        cwd=root,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def make_import_error(
    what: str = "the agent's process died while it imported the agent", hint: str = ""
) -> AgentMisconfigured:
    """Return the error of an agent whose process did not report how its import ended."""
    return AgentMisconfigured(what, code="agent-import-failed", hint=hint, key="agent.endpoint")


async def import_agent(
    setup: protocol.HostSetup,
    send: Callable[[protocol.HostSetup], Awaitable[None]],
    receive: Callable[[], Awaitable[bytes]],
    limit_s: float = inf,
    hint: str = "",
) -> protocol.Ready | None:
    """Send a host its setup and wait until the agent is imported; None if the host closes the connection first.

    Raises AgentUnavailable if the agent cannot be imported in the usual time, TimeoutError after a shorter `limit_s`.
    """
    messages: list[bytes] = []
    frames = protocol.MessageFrames(messages.append)
    try:
        async with asyncio.timeout(min(protocol.IMPORT_S, limit_s)):
            await send(setup)
            while not messages:
                data = await receive()
                if not data:
                    return None
                frames.feed(data)
    except TimeoutError:
        if limit_s < protocol.IMPORT_S:
            raise
        raise make_import_error(f"the agent's import did not finish within {protocol.IMPORT_S:g} s", hint) from None
    result: protocol.Ready | protocol.Unusable
    result = msgspec.json.decode(messages[0], type=protocol.Ready | protocol.Unusable)
    if isinstance(result, protocol.Unusable):
        raise result.to_error()
    return result


async def _await_import(ours: socket.socket, setup: protocol.HostSetup) -> protocol.Ready:
    """Send the host its setup and wait until the agent is imported; raise AgentUnavailable if that fails."""
    hint = f"import it yourself: python -c 'import {setup.agent.endpoint.partition(':')[0]}'"
    loop = asyncio.get_running_loop()

    async def send(message: protocol.HostSetup) -> None:
        await loop.sock_sendall(ours, protocol.add_length(encode(message)))

    try:
        ready = await import_agent(setup, send, partial(loop.sock_recv, ours, 1 << 16), hint=hint)
    except OSError as broken:
        raise make_import_error(f"the agent's process died while it started: {broken}", hint) from broken
    if ready is None:
        raise make_import_error(hint=hint)
    return ready


def _end(process: subprocess.Popen[bytes], mark: str, *, tidies: bool = False) -> None:
    """End a host; processes that it did not clean up are found by its mark."""
    tidy = tidies and process.poll() == 0
    if process.poll() is None:
        kill_group(process.pid, signal.SIGKILL)
    process.wait()
    if not tidy:
        end_marked(MARK, mark)
