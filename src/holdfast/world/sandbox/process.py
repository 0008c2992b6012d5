"""The process backend: plain processes of this machine, in a private folder. It isolates nothing, and says so."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from holdfast.errors import HarnessError
from holdfast.model.world import Isolation, Resources, SandboxTraits
from holdfast.protocols.sandbox import THROWAWAY, Ran, SandboxSpec, Stdio
from holdfast.world.holders import wire
from holdfast.world.holders.holder_connection import GONE, HolderConnection
from holdfast.world.holders.running_program import RunningProgram, run_to_end
from holdfast.world.holders.wire import HolderMessage
from holdfast.world.sandbox.host_process import HostProcess
from holdfast.world.sandbox.limits import ControlGroup
from holdfast.world.sandbox.live_limits import LiveLimits, family
from holdfast.world.sandbox.promises import ALWAYS
from holdfast.world.sandbox.workspace import FolderSandbox, copy_tree, remove

WHY = "the process backend isolates nothing"
ISOLATION = (
    *(Isolation(feature, False, WHY) for feature in (*ALWAYS, "socket families")),
    *(Isolation(f"{what} limit", False, WHY) for what in ("pids", "memory", "cpu")),
    Isolation("command audit", False, "the process backend does not hear of commands"),
    Isolation("file audit", False, "the process backend does not see what is written outside the workspace"),
    Isolation(THROWAWAY, False, "commands of checks run in the workspace itself, last"),
)
_TICKET = 1
"""A keeper has one order: its program."""


class ProcessBackend:
    """Opens private folders and starts plain processes in them. Close it after use."""

    name = "process"

    traits: ClassVar[SandboxTraits] = SandboxTraits(isolates=False)

    @classmethod
    async def open_backend(cls, folder: Path, image: str | None = None) -> ProcessBackend:
        """The backend; `folder` holds its workspaces. There are no images."""
        return cls(folder)

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._host = HostProcess("bare")

    @property
    def isolation(self) -> tuple[Isolation, ...]:
        return ISOLATION

    async def open(self, sandbox_spec: SandboxSpec) -> ProcessSandbox:
        if not self._host.alive:  # something killed it: the trials that it held are lost, not those to come
            await self._host.close()
            self._host = HostProcess("bare")
        folder = self._folder / f"place-{os.urandom(6).hex()}"
        sandbox = ProcessSandbox(sandbox_spec, folder, self._host)
        try:
            await sandbox.open()
        except OSError as broken:
            await sandbox.close()
            raise HarnessError(f"the workspace could not be made: {broken}") from broken
        except BaseException:
            await sandbox.close()
            raise
        return sandbox

    async def close(self) -> None:
        await self._host.close()


class ProcessSandbox(FolderSandbox):
    """One folder and the programs that were started in it."""

    def __init__(self, sandbox_spec: SandboxSpec, folder: Path, host: HostProcess) -> None:
        super().__init__(sandbox_spec, ISOLATION, folder)
        self.workspace = str(self._root)
        self.home = str(folder / "home")
        self._host = host
        self._lines: dict[HolderConnection, RunningProgram] = {}
        self._agents: dict[HolderConnection, int] = {}
        """Of the programs that are the agent's: their process ids."""
        self._group = ControlGroup({})
        self._strain = LiveLimits(self._group, Resources(), self._everybody)

    async def open(self) -> None:
        self._folder.mkdir(mode=0o700)
        self._root.mkdir()
        os.mkdir(self.home)
        if self._sandbox_spec.home is not None:
            await asyncio.to_thread(copy_tree, self._sandbox_spec.home, Path(self.home))
        for layer in self._sandbox_spec.layers:
            await asyncio.to_thread(copy_tree, layer, self._root)
        for address in self._sandbox_spec.listen:
            self._listeners[address] = _listener()
        await self.snapshot()

    def address(self, host: str, port: int) -> tuple[str, int]:
        """There is one network for all, so every listener has a port of its own in it."""
        real = self._listeners[host, port].getsockname()
        return str(real[0]), int(real[1])

    def inside(self, path: str) -> str:
        """Nothing can be placed at a path of our choice: programs use what is meant itself."""
        return str(self._sandbox_spec.visible[path].resolve())

    async def connect(self, port: int) -> socket.socket:
        way = socket.socket()
        way.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(way, ("127.0.0.1", port))
        except BaseException:
            way.close()
            raise
        return way

    async def start(
        self, argv: Sequence[str], env: Mapping[str, str], stdio: Stdio, *, cwd: str = ""
    ) -> RunningProgram:
        self._refuse_if_frozen()
        program = await self._start(argv, env, stdio, cwd, agents=True)
        await self._strain.again(self._kill)
        return program

    async def run(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        stdin: bytes = b"",
        timeout_s: float = 120.0,
        keep: int = 8_000,
        throwaway: bool = False,
    ) -> Ran:
        """A throwaway command leaves its traces here: `isolation` says so."""
        return await run_to_end(self._start, argv, env, stdin, timeout_s, keep)

    async def freeze(self) -> None:
        self._frozen = True
        await asyncio.gather(*(line.close() for line in [*self._lines]))

    async def kill(self) -> int:
        """Asked for, not awaited: whoever waits for a program may hear of its end only after this is done."""
        return self._kill()

    async def limit(self, *, memory: int | None = None, cpu: float | None = None) -> None:
        """The memory that a program has by then does not count where the machine limits all of them together."""
        await self._strain.limit(memory, cpu, self._kill)

    def strained(self, what: Literal["memory", "cpu"]) -> int | None:
        return self._strain.strained(what)

    async def close(self) -> None:
        await self.freeze()
        self._close_listeners()
        try:
            await self._group.close()
        finally:
            await asyncio.to_thread(remove, self._folder)

    async def _start(
        self, argv: Sequence[str], env: Mapping[str, str], stdio: Stdio, cwd: str = "", *, agents: bool = False
    ) -> RunningProgram:
        program = RunningProgram(lambda number: self._signal(line, number), self._strain.memory_end())
        order = wire.StartOrder(tuple(argv), dict(env), os.path.normpath(os.path.join(self.workspace, cwd)))
        line = self._host.order(
            order,
            [stdio.stdin, stdio.stdout, stdio.stderr],
            lambda message: self._ended(line, program, message),
            lambda: self._lost(line, program),
        )
        line.expect(_TICKET)
        self._lines[line] = program
        try:
            pid = (await line.reply(_TICKET)).value
        except OSError as refused:
            await line.close()
            raise OSError(refused.errno, refused.strerror, argv[0]) from None
        except BaseException:
            await line.close()
            raise
        if agents and not program.ended:
            self._agents[line] = pid
        return program

    def _everybody(self) -> Iterator[int]:
        return family(self._agents.values())

    def _kill(self) -> int:
        for line in self._agents:
            self._signal(line, signal.SIGKILL)
        return len(self._agents)

    def _signal(self, line: HolderConnection, number: int) -> None:
        if not line.closed.is_set():
            if number == signal.SIGKILL and (program := self._lines.get(line)):
                program.killed = True
            line.tell(wire.SIGNAL, _TICKET, number)

    def _ended(self, line: HolderConnection, program: RunningProgram, message: HolderMessage) -> None:
        if message.what == wire.ENDED:
            self._agents.pop(line, None)
            program.finish(message.value, message.took_ns / 1e6)

    def _lost(self, line: HolderConnection, program: RunningProgram) -> None:
        self._lines.pop(line, None)
        self._agents.pop(line, None)
        program.finish(None, lost=not self._frozen, note=GONE)


def _listener() -> socket.socket:
    listener = socket.socket()
    listener.setblocking(False)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    return listener
