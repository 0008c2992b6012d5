"""A bubblewrap sandbox as the rest of Holdfast sees it: it sends requests to the supervisor, which does the work."""

from __future__ import annotations

import asyncio
import json
import os
import select
import shutil
import signal
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Literal

from holdfast.errors import SandboxFailed
from holdfast.model.world import Isolation
from holdfast.processes.leftovers import list_family
from holdfast.processes.program import BeginProgram, Program
from holdfast.protocols.sandbox import Command, CommandEnd, FileChange, FileHazard, SandboxSpec, Stdio
from holdfast.world.sandbox import kernel
from holdfast.world.sandbox.limits import ControlGroup, LiveLimits
from holdfast.world.sandbox.workspace import OpenSandbox, resolve
from holdfast.world.supervisors import messages as wire
from holdfast.world.supervisors.connection import SupervisedPrograms, await_connected
from holdfast.world.supervisors.messages import WORKSPACE, SupervisorMessage

NOT_EXECUTED = "the sandbox could not execute it"
_PART_TIMEOUT_MS = 10_000
"""Timeout for the next part of a list of changes: long, because a busy machine may be slow."""


class BubblewrapSandbox(OpenSandbox):
    """One sandbox of the bubblewrap backend."""

    def __init__(
        self, sandbox_spec: SandboxSpec, isolation: tuple[Isolation, ...], group: ControlGroup, copies: list[Path]
    ) -> None:
        super().__init__(sandbox_spec, isolation)
        self._group = group
        self._copies = copies
        self.programs = SupervisedPrograms()
        self._limits = LiveLimits(
            group,
            sandbox_spec.resources,
            lambda: list_family([self._supervisor]),
            self.programs.kill_agents,
            lambda: self._protected,
        )
        self._commands: dict[int, Callable[[CommandEnd], None]] = {}
        """What to call when a command ends, by its number."""
        self._watches = 0
        self._hits: set[int] = set()
        """The numbers of the watches whose fault the agent has hit."""
        self._view = -1
        self._home_view = -1
        self._supervisor = 0
        self._protected: set[int] = set()
        """Process ids of the supervisor and its own helpers."""

    async def open(self) -> None:
        """Wait until the supervisor has made the sandbox; raise HarnessError if it cannot."""
        line = self.programs.line
        line.expect(0)
        message = await line.await_reply(0)
        self._view, self._home_view, *listeners = message.fds
        for address, fd in zip(self._sandbox_spec.listen, listeners, strict=True):
            listener = socket.socket(fileno=fd)
            listener.setblocking(False)
            self._listeners[address] = listener
        self._supervisor = message.value
        self._protected = {self._supervisor, *map(int, message.text.split())}

    async def connect(self, port: int) -> socket.socket:
        """Connect to a port inside; raise ConnectionRefusedError while nothing listens there."""
        # A server may listen on one of the two loopback addresses only: `localhost` is ::1 for some.
        try:
            message = await self.programs.line.ask(wire.CONNECT, port, text=b"4")
            return await await_connected(message.fds[0])
        except ConnectionRefusedError:
            message = await self.programs.line.ask(wire.CONNECT, port, text=b"6")
            return await await_connected(message.fds[0])

    async def start(self, argv: Sequence[str], env: Mapping[str, str], stdio: Stdio) -> Program:
        self._refuse_if_frozen()
        program = await self._start(argv, env, stdio, agents=True)
        await self._limits.reapply()
        return program

    def _open_starter(self, throwaway: bool) -> AbstractAsyncContextManager[BeginProgram]:
        """Once the workspace is frozen, every command gets a throwaway layer."""

        async def begin(argv: Sequence[str], env: Mapping[str, str], stdio: Stdio) -> Program:
            return await self._start(argv, env, stdio, agents=False, throwaway=throwaway or self._frozen)

        return nullcontext(begin)

    async def snapshot(self) -> None:
        try:
            message = await self.programs.line.ask(wire.SNAPSHOT)
        except OSError as refused:
            raise SandboxFailed(f"the workspace could not be stored: {refused}") from refused
        os.close(self._view)
        self._view = message.fds[0]

    async def freeze(self) -> None:
        self._frozen = True
        await self.programs.line.ask(wire.FREEZE)
        self._limits.lift()

    async def kill(self) -> int:
        return await self.programs.kill_agents()

    async def limit(self, *, memory: int | None = None, cpu: float | None = None) -> None:
        await self._limits.limit(memory, cpu)

    def count_limit_hits(self, resource: Literal["memory", "cpu"]) -> int | None:
        return self._limits.count_hits(resource)

    async def watch(self, hazard: FileHazard) -> Callable[[], bool] | None:
        if not self._sandbox_spec.watched or not kernel.can_filter():
            return None
        self._watches += 1
        number = self._watches
        watch = wire.WatchOrder.from_workspace(hazard.kind, hazard.path, hazard.spared, number)
        order = wire.write_order(watch)
        try:
            await self.programs.line.ask(wire.WATCH, fds=[order])
        finally:
            os.close(order)
        return lambda: number in self._hits

    def changes(self) -> Iterator[FileChange]:
        # This is a plain generator that checks iterate outside the loop, so it serves the supervisor's line itself
        # while it waits. Otherwise a full line would block the supervisor, and this would wait for it forever.
        ours, theirs = os.pipe()
        with open(ours, "rb", buffering=0) as reader:
            try:
                self.programs.line.send_order(wire.CHANGES, 0, fds=[theirs])
            finally:
                os.close(theirs)
            yield from _decode_changes(self._read_pieces(reader.fileno()))

    def find(self, path: str) -> Path | None:
        resolved = resolve(self._view, WORKSPACE, path)
        return None if resolved is None else self.view() / resolved

    def view(self) -> Path:
        """Return the workspace through a file descriptor: only the supervisor's namespace has the mount."""
        return Path(f"/proc/{os.getpid()}/fd/{self._view}")

    def home_view(self) -> Path:
        return Path(f"/proc/{os.getpid()}/fd/{self._home_view}")

    async def close(self) -> None:
        self._close_listeners()
        for view in (self._view, self._home_view):
            if view >= 0:
                os.close(view)
        self._view = self._home_view = -1
        try:
            await self.programs.line.close()
        finally:
            await self._group.close()
            for copy in self._copies:
                await asyncio.to_thread(shutil.rmtree, copy, ignore_errors=True)

    def handle_notice(self, message: SupervisorMessage) -> None:
        """Handle a message that the supervisor sends on its own: a program ended, a command started or ended."""
        if message.what == wire.COMMAND and self._sandbox_spec.commands is not None:
            record = json.loads(message.text)
            command = Command(tuple(record["argv"]), record["cwd"], record["ts"])
            self._commands[message.ticket] = self._sandbox_spec.commands(command)
        elif message.what == wire.HIT:
            self._hits.add(message.ticket)
        elif message.what == wire.OVER:
            for number, code, took_ns in json.loads(message.text):
                if on_end := self._commands.pop(number, None):
                    on_end(CommandEnd(code, None if took_ns is None else took_ns / 1e6))
        elif message.what == wire.ENDED and (program := self.programs.pop_ended(message.ticket)):
            program_ms = message.took_ns / 1e6
            if message.value != wire.UNKNOWN:
                program.finish(message.value, program_ms)
            elif program.starved:
                program.finish(signal.SIGKILL, program_ms)  # there was not even enough memory to set up the command
            else:
                program.finish(None, program_ms, lost=True, note=NOT_EXECUTED)

    async def _start(
        self, argv: Sequence[str], env: Mapping[str, str], stdio: Stdio, *, agents: bool, throwaway: bool = False
    ) -> Program:
        order = wire.StartOrder(tuple(argv), dict(env), WORKSPACE)
        memory_end = self._limits.make_memory_end()
        return await self.programs.start(
            argv[0], wire.write_order(order), stdio, agents=agents, throwaway=throwaway, memory_end=memory_end
        )

    def _read_pieces(self, reader_fd: int) -> Iterator[bytes]:
        """Read what the supervisor's child writes, and keep serving the supervisor's messages meanwhile."""
        poll = select.poll()
        poll.register(reader_fd, select.POLLIN)
        poll.register(self.programs.line.fileno(), select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll(_PART_TIMEOUT_MS)}
            if reader_fd in ready:
                piece = os.read(reader_fd, 1 << 16)
                if not piece:
                    return
                yield piece
                continue
            self.programs.line.listen()
            if not ready or self.programs.line.closed.is_set():
                raise SandboxFailed("the changes of the workspace could not be read")


def _decode_changes(pieces: Iterable[bytes]) -> Iterator[FileChange]:
    """Decode the list of changes: one on each line, then a point."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from (FileChange(*json.loads(line)) for line in lines)
    if rest != b".":
        raise SandboxFailed("the changes of the workspace could not be read to their end")
