"""Any image as a service: a container of its own for every trial. Only under the docker backend.

The container has no network but its loopback. A second one, a program of ours, shares that and nothing else, and opens
connections in there for us. So neither the agent nor anybody else on this machine reaches a port of it but through us.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
from pathlib import Path

from msgspec import Struct

from holdfast import service_kinds
from holdfast.errors import HarnessError, UserError
from holdfast.model.world import Resources, ServiceSpec
from holdfast.protocols import ContainedKind, WarmService
from holdfast.service_kinds import port_of
from holdfast.world.containers.container import Container, Shape, docker, removed, run
from holdfast.world.containers.first_process import first_process
from holdfast.world.containers.folders import make_folders
from holdfast.world.containers.owner import sweep
from holdfast.world.holders.hosts_file import hosts_file
from holdfast.world.holders.user import whom
from holdfast.world.services.contained import Contained
from holdfast.world.services.container_options import client_env, env_file, options
from holdfast.world.services.container_ports import ContainerPorts
from holdfast.world.services.container_ready import ready, said, state
from holdfast.world.services.lifeline import Lifeline
from holdfast.world.services.socket_folder import SocketFolder
from holdfast.world.services.socket_folder import sweep as sweep_folders
from holdfast.world.services.spares import SpareKeeper

_BESIDE_PIDS = 16


class EngineImage(Struct, frozen=True):
    """What the engine has under a name."""

    id: str
    digest: str = ""
    """As a registry knows it; empty for one that was made here."""


class RunningContainer:
    """A container under way, with our program beside it and our sockets in front. Close it after use."""

    def __init__(self, spec: ServiceSpec, folder: Path, socket_folder: Path, first: Path, lifeline: Lifeline) -> None:
        self.spec = spec
        self.socket_folder = socket_folder
        self.name = f"holdfast-{os.getpid()}-{secrets.token_hex(6)}"
        self._folder = folder / self.name
        self._lifeline = lifeline
        self._shape = Shape(spec.image or "", first, whom(), self._folder, {}, Resources(), _BESIDE_PIDS, self.name)
        self._beside = Container(self._shape)
        self._ports = ContainerPorts(socket_folder, self._beside.connect)

    @property
    def alive(self) -> bool:
        return not self._beside.line.closed.is_set()

    def path(self, port: int) -> str:
        return self._ports.path(port)

    async def open(self) -> None:
        """Starts it, and waits until it is ready; HarnessError with the end of its log if it is not."""
        await self._start()
        self._folder.mkdir(mode=0o700)
        await asyncio.to_thread(make_folders, self._shape, hosts_file({}))
        try:
            await self._beside.open()
        except HarnessError as refused:
            why = await state(self.name) or f"cannot be reached: {refused}"
            raise HarnessError(f"service {self.spec.name}: {self.spec.image} {why}{await said(self.name)}") from refused
        await ready(self.spec, self.name, self._beside.connect)
        await self._ports.open(self.spec.ports or (port_of(self.spec),))

    async def close(self) -> None:
        """Nothing is left of it, in the engine too."""
        try:
            await self._ports.close()
            await self._beside.close()
        finally:
            try:
                await removed(self.name, "name")
            finally:
                await asyncio.to_thread(self._forget)

    async def _start(self) -> None:
        fd = env_file(self.spec.env)
        words = options(self.spec, self.name, self._lifeline.label, f"/proc/self/fd/{fd}")
        try:
            await run(*words, fds=(fd, self._lifeline.fd), env=client_env(self.spec.env))
        except HarnessError as refused:
            raise HarnessError(f"service {self.spec.name}: {self.spec.image} does not start: {refused}") from refused
        finally:
            os.close(fd)

    def _forget(self) -> None:
        for folder in (self._folder, self.socket_folder):
            shutil.rmtree(folder, ignore_errors=True)


async def open_container(spec: ServiceSpec, folder: Path) -> SpareKeeper[WarmService]:
    """Keeps fresh containers ready for trials; UserError if the engine lacks the image."""
    image = await find_image(spec)
    first = await first_process()
    await asyncio.to_thread(sweep)
    sweep_folders()
    home, lifeline = SocketFolder(folder, None), Lifeline()
    notes = (note(spec, image),)

    async def fresh() -> WarmService:
        running = RunningContainer(spec, folder, home.socket_folder(), first, lifeline)
        try:
            await running.open()
            return await _service(running, notes)
        except BaseException:
            await running.close()
            raise

    def done() -> None:
        lifeline.close()
        home.close()

    return SpareKeeper(fresh, done)


async def _service(running: RunningContainer, notes: tuple[str, ...]) -> WarmService:
    """What a container is, by what its image is known as."""
    kind = service_kinds.made(running.spec)
    if isinstance(kind, ContainedKind):
        return await kind.contained(running, notes)
    return Contained(running, notes, {})


async def find_image(spec: ServiceSpec) -> EngineImage:
    """What the engine has under the name that the spec gives; UserError if that is nothing."""
    name = spec.image or ""
    try:
        found = json.loads(await docker("image", "inspect", "--format", "{{json .}}", name))
    except HarnessError as missing:
        raise UserError(
            f"service {spec.name}: the image {name} is not here: {missing}", hint=f"docker pull {name}"
        ) from missing
    return EngineImage(found["Id"], next(iter(found.get("RepoDigests") or ()), ""))


def note(spec: ServiceSpec, image: EngineImage) -> str:
    """What the reader is told of the image that is used."""
    return f"service {spec.name}: {spec.image} runs as a container of {image.digest or image.id}"
