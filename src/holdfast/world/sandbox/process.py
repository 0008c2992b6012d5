"""The process backend: plain processes of this machine in a private folder. It isolates nothing, and reports that."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import ClassVar, Literal

from holdfast.model.capabilities import ALWAYS, CPU, FAMILIES, MEMORY, PIDS, build_missing
from holdfast.model.world import Resources, SandboxTraits
from holdfast.processes.launcher import Launcher
from holdfast.processes.leftovers import list_family
from holdfast.processes.program import KILL_S, BeginProgram, Program, await_all
from holdfast.protocols.sandbox import SandboxSpec, Stdio
from holdfast.world.sandbox.limits import ControlGroup, LiveLimits
from holdfast.world.sandbox.workspace import FolderSandbox, copy_tree, open_sandbox, remove

ISOLATION = (
    *(build_missing("no-isolation", feature) for feature in (*ALWAYS, FAMILIES, PIDS, MEMORY, CPU)),
    build_missing("commands-unreported", who="the process backend"),
    build_missing("files-unreported"),
    build_missing("throwaway-shared"),
)


class ProcessBackend:
    """Opens private folders and starts plain processes in them. Close it after use."""

    name = "process"
    isolation = ISOLATION

    traits: ClassVar[SandboxTraits] = SandboxTraits(isolates=False)

    @classmethod
    async def open_backend(cls, folder: Path, image: str | None = None) -> ProcessBackend:
        """Open the backend; `folder` holds its workspaces. It has no images."""
        return cls(folder)

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._launcher = Launcher(marks=False)  # its environment is exactly the one passed

    async def open(self, sandbox_spec: SandboxSpec) -> ProcessSandbox:
        folder = self._folder / f"place-{os.urandom(6).hex()}"
        return await open_sandbox(ProcessSandbox(sandbox_spec, folder, self._launcher))

    async def close(self) -> None:
        await self._launcher.close()


class ProcessSandbox(FolderSandbox):
    """One folder and the programs started in it."""

    def __init__(self, sandbox_spec: SandboxSpec, folder: Path, launcher: Launcher) -> None:
        super().__init__(sandbox_spec, ISOLATION, folder)
        self.workspace = str(self._root)
        self.home = str(folder / "home")
        self._launcher = launcher
        self._programs: list[Program] = []
        self._agents: list[Program] = []
        """The programs of the agent."""
        self._group = ControlGroup({})
        self._limits = LiveLimits(self._group, Resources(), self._list_processes, self.kill)

    async def open(self) -> None:
        self._folder.mkdir(mode=0o700)
        self._root.mkdir()
        os.mkdir(self.home)
        if self._sandbox_spec.home is not None:
            await asyncio.to_thread(copy_tree, self._sandbox_spec.home, Path(self.home))
        for layer in self._sandbox_spec.layers:
            await asyncio.to_thread(copy_tree, layer, self._root)
        for address in self._sandbox_spec.listen:
            listener = socket.create_server(("127.0.0.1", 0), backlog=128)
            listener.setblocking(False)
            self._listeners[address] = listener
        await self.snapshot()

    def address(self, host: str, port: int) -> tuple[str, int]:
        """Return the listener's own port: all sandboxes of this backend share one network."""
        real = self._listeners[host, port].getsockname()
        return str(real[0]), int(real[1])

    def inside(self, path: str) -> str:
        """Return the original path: this backend cannot place a file at another one."""
        return str(self._sandbox_spec.visible[path].resolve())

    async def connect(self, port: int) -> socket.socket:
        connection = socket.socket()
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
        except BaseException:
            connection.close()
            raise
        return connection

    async def start(self, argv: Sequence[str], env: Mapping[str, str], stdio: Stdio) -> Program:
        self._refuse_if_frozen()
        program = await self._start(argv, env, stdio, agents=True)
        await self._limits.reapply()
        return program

    def _open_starter(self, throwaway: bool) -> AbstractAsyncContextManager[BeginProgram]:
        """Ignore `throwaway`: this backend cannot isolate such a command, as `isolation` reports."""
        return nullcontext(self._start)

    async def freeze(self) -> None:
        self._frozen = True
        await await_all(program.end(0.0) for program in self._programs)

    async def kill(self) -> int:
        running = _filter_alive(self._agents)
        for program in running:
            program.kill()
        await await_all(program.wait_for_end(KILL_S) for program in running)
        return len(running)

    async def limit(self, *, memory: int | None = None, cpu: float | None = None) -> None:
        """Limit memory and CPU.

        Where the machine limits all programs together, memory that a program already uses does not count.
        """
        await self._limits.limit(memory, cpu)

    def count_limit_hits(self, resource: Literal["memory", "cpu"]) -> int | None:
        return self._limits.count_hits(resource)

    async def close(self) -> None:
        await self.freeze()
        self._close_listeners()
        try:
            await self._group.close()
        finally:
            await asyncio.to_thread(remove, self._folder)

    async def _start(
        self, argv: Sequence[str], env: Mapping[str, str], stdio: Stdio, *, agents: bool = False
    ) -> Program:
        program = await self._launcher.start(argv, env, self._root, stdio, self._limits.make_memory_end())
        # Ended programs are dropped here, so that a sandbox with thousands of short commands does not keep them all.
        self._programs = [*_filter_alive(self._programs), program]
        if agents:
            self._agents = [*_filter_alive(self._agents), program]
        return program

    def _list_processes(self) -> Iterator[int]:
        return list_family(program.pid for program in _filter_alive(self._agents))


def _filter_alive(programs: list[Program]) -> list[Program]:
    return [program for program in programs if not program.ended]
