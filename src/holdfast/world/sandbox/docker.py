"""The docker backend: a container for each trial, from the user's image, with no network except Holdfast's.

It needs a local engine and its client, and nothing in the image: the container's first process is a small static
program that opens sockets in the container for Holdfast and starts the agent. The workspace is a folder of this
machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from msgspec.structs import replace

from holdfast.errors import HarnessError, UserError
from holdfast.model.capabilities import (
    ALWAYS,
    CPU,
    DISK,
    MEMORY,
    NESTED,
    PIDS,
    THROWAWAY,
    build_enforced,
    build_missing,
)
from holdfast.model.world import Isolation, SandboxTraits
from holdfast.processes.program import BeginProgram, Program
from holdfast.protocols.sandbox import SandboxSpec, Stdio
from holdfast.world.sandbox.bubblewrap import PROCESS_LIMIT
from holdfast.world.sandbox.isolation import list_sandbox_isolation
from holdfast.world.sandbox.workspace import FolderSandbox, copy_tree, make_unavailable_error, open_sandbox, remove
from holdfast.world.supervisors.container import (
    Container,
    Shape,
    compile_first_process,
    inspect_image,
    make_folders,
    run_docker,
)
from holdfast.world.supervisors.messages import WORKSPACE, find_sandbox_user, format_hosts_file


class DockerBackend:
    """Opens containers of one image. Close it after use."""

    name = "docker"

    traits: ClassVar[SandboxTraits] = SandboxTraits(image=True)

    @classmethod
    async def open_backend(cls, folder: Path, image: str | None) -> DockerBackend:
        """Open the backend and test it on this machine; raise UserError with what to do if it cannot work."""
        if not image:
            raise UserError(
                "the docker backend needs an image",
                code="image-missing",
                hint='name one in the spec, as `base: "python:3.12"`',
            )
        if shutil.which("docker") is None:
            raise make_unavailable_error("docker-client-missing")
        first = await compile_first_process()
        try:
            # This fails without an engine; `info` of some clients does not.
            await run_docker("version", "--format", "{{.Server.Version}}")
            engine = json.loads(await run_docker("info", "--format", "{{json .}}"))
        except HarnessError as refused:
            raise make_unavailable_error("docker-engine-missing", why=refused) from refused
        await inspect_image(image)
        backend = cls(folder, image, first, read_isolation(engine))
        try:
            await (await backend.open(SandboxSpec("probe"))).close()
        except HarnessError as refused:
            raise make_unavailable_error("docker-engine-remote", why=refused) from refused
        return backend

    def __init__(self, folder: Path, image: str, first: Path, isolation: tuple[Isolation, ...]) -> None:
        self._folder = folder
        self._image = image
        self._first = first
        self.isolation = isolation

    async def open(self, sandbox_spec: SandboxSpec) -> DockerSandbox:
        folder = self._folder / f"container-{os.urandom(6).hex()}"
        folder.mkdir(mode=0o700)
        shape = Shape(
            image=self._image,
            first_process=self._first,
            user=find_sandbox_user(),
            folder=folder,
            visible={inside: path.resolve() for inside, path in sandbox_spec.visible.items()},
            workdirs=tuple(path for path, target in sandbox_spec.links.items() if target == WORKSPACE),
            resources=sandbox_spec.resources,
            pids=sandbox_spec.resources.pids or PROCESS_LIMIT,
        )
        isolation = list_sandbox_isolation(self.isolation, sandbox_spec.resources, PROCESS_LIMIT)
        return await open_sandbox(DockerSandbox(sandbox_spec, shape, isolation))

    async def close(self) -> None:
        """Do nothing: every trial has closed its container."""


class DockerSandbox(FolderSandbox):
    """One trial's container."""

    def __init__(self, sandbox_spec: SandboxSpec, shape: Shape, isolation: tuple[Isolation, ...]) -> None:
        super().__init__(sandbox_spec, isolation, shape.folder)
        self._shape = shape
        self._container = Container(shape)

    async def open(self) -> None:
        home = self._sandbox_spec.home
        sources = {"workspace": self._sandbox_spec.layers, "home": () if home is None else (home,)}
        await asyncio.to_thread(fill_folders, self._shape, sources, self._sandbox_spec.hosts)
        await self._container.open()
        for address in self._sandbox_spec.listen:
            self._listeners[address] = await self._container.listen(*address)
        await self.snapshot()

    async def connect(self, port: int) -> socket.socket:
        return await self._container.connect(port)

    async def start(self, argv: Sequence[str], env: Mapping[str, str], stdio: Stdio) -> Program:
        self._refuse_if_frozen()
        return await self._container.start(argv, env, stdio, agents=True)

    @contextlib.asynccontextmanager
    async def _open_starter(self, throwaway: bool) -> AsyncIterator[BeginProgram]:
        """Start a throwaway command in a container of its own, with copies of the workspace and /tmp."""
        # An engine has no layers that can be thrown away in a running container. So the command gets a second
        # container, with copies of the folders and the network of the first.
        if throwaway:
            async with self._open_copy() as copy:
                yield copy.start
        else:
            yield self._container.start

    async def freeze(self) -> None:
        self._frozen = True
        await self._container.end_everything()

    async def kill(self) -> int:
        return await self._container.programs.kill_agents()

    async def limit(self, *, memory: int | None = None, cpu: float | None = None) -> None:
        """Change the limits; raise HarnessError with the engine's message if it cannot."""
        size = [] if memory is None else ["--memory", str(memory), "--memory-swap", str(memory)]
        share = [] if cpu is None else ["--cpus", f"{cpu:g}"]
        if size or share:
            await run_docker("update", *size, *share, self._container.id)

    def count_limit_hits(self, resource: Literal["memory", "cpu"]) -> int | None:
        """Return None: Holdfast cannot read the engine's control groups."""
        return None

    async def close(self) -> None:
        self._close_listeners()
        try:
            await self._container.close()
        finally:
            await asyncio.to_thread(remove, self._folder)

    @contextlib.asynccontextmanager
    async def _open_copy(self) -> AsyncIterator[Container]:
        folder = self._folder / f"copy-{os.urandom(6).hex()}"
        shape = replace(self._shape, folder=folder, network_of=self._container.id)
        folder.mkdir(mode=0o700)
        copy = Container(shape)
        try:
            sources = {name: (self._folder / name,) for name in ("workspace", "home", "tmp")}
            await asyncio.to_thread(fill_folders, shape, sources, self._sandbox_spec.hosts)
            await copy.open()
            yield copy
        finally:
            await copy.close()
            await asyncio.to_thread(remove, folder)


def read_isolation(engine: Mapping[str, object]) -> tuple[Isolation, ...]:
    """Return what every container enforces, according to the engine."""
    options = engine.get("SecurityOptions")
    filtered = any("seccomp" in str(option) for option in (options if isinstance(options, list) else ()))
    missing = {DISK: build_missing("engine-disk"), **({} if filtered else {NESTED: build_missing("engine-unfiltered")})}
    limits = {PIDS: "PidsLimit", MEMORY: "MemoryLimit", CPU: "CpuCfsQuota"}
    return (
        *(missing.get(feature) or build_enforced(feature) for feature in ALWAYS),
        build_missing("engine-families"),
        *(
            build_enforced(feature) if engine.get(key) else build_missing("engine-limit", feature, key=key)
            for feature, key in limits.items()
        ),
        build_missing("commands-unreported", who="the docker backend"),
        build_enforced(THROWAWAY),
    )


def fill_folders(shape: Shape, sources: Mapping[str, Sequence[Path]], hosts: Mapping[str, str]) -> None:
    """Make the folders that a container sees and copy the sources into them, by name."""

    def fill(name: str, target: Path) -> None:
        for source in sources.get(name, ()):
            copy_tree(source, target)

    make_folders(shape, format_hosts_file(hosts), fill)
