"""Any image as a service: a separate container for every trial. Only under the docker backend.

The container has only a loopback network. A second container with a Holdfast program shares that network and nothing
else, and opens connections there. So the agent and other programs on this machine reach its ports only through
Holdfast.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from socket import socket
from typing import Any

from holdfast import service_kinds
from holdfast.errors import HarnessError, ServiceFailed, UserError
from holdfast.model.world import Resources, ServiceSpec
from holdfast.processes import scratch
from holdfast.processes.leftovers import kill_group
from holdfast.protocols.service import ContainedKind, ServiceContainer, WarmService
from holdfast.service_kinds import get_port
from holdfast.streams.connection_listener import Forwarder
from holdfast.world.services.confinement import compute_data_limit
from holdfast.world.services.server import SocketFolder
from holdfast.world.services.spares import SpareKeeper
from holdfast.world.supervisors.container import (
    Container,
    Shape,
    compile_first_process,
    inspect_image,
    make_folders,
    remove_container,
    run_container,
    run_docker,
)
from holdfast.world.supervisors.container_owner import LABEL, identify_owner, sweep
from holdfast.world.supervisors.messages import find_sandbox_user, format_hosts_file, make_memory_file

Connect = Callable[[int], Awaitable[socket]]


class ContainerPorts:
    """Listens on sockets in a folder and forwards connections to the container's ports. Close it after use."""

    def __init__(self, folder: Path, connect: Connect) -> None:
        self._folder = folder
        self._connect = connect
        self._forwarders: list[Forwarder] = []

    async def open(self, ports: Iterable[int]) -> None:
        for port in ports:
            forwarder = Forwarder(partial(self._connect, port))
            self._forwarders.append(await forwarder.listen(self.get_socket_path(port)))

    def get_socket_path(self, port: int) -> str:
        """Return the socket of a port, named as PostgreSQL clients expect it."""
        return str(self._folder / f".s.PGSQL.{port}")

    async def close(self) -> None:
        """Close all connections, tasks and sockets."""
        for forwarder in self._forwarders:
            await forwarder.close()


LIMIT_S = 60.0
"""Seconds to wait: more than for servers of this machine, because many images first prepare their data."""
PAUSE_S = 0.02
_ALIVE_S = 0.5
"""Seconds between two checks that the container still runs."""
_LOG_LINES = 20


async def await_ready(spec: ServiceSpec, name: str, connect: Connect) -> None:
    """Wait until it is ready; raise HarnessError with the end of its log if it ends first or is too slow."""
    late = f"does not accept connections on port {get_port(spec)}"
    try:
        async with asyncio.timeout(LIMIT_S):
            await _await_connection(get_port(spec), name, connect)
            if spec.wait_for is not None:
                late = f"is not ready according to its wait_for ({spec.wait_for})"
                await _await_success(spec.wait_for, name)
        return
    except TimeoutError:
        why = f"{late} after {LIMIT_S:.0f} s"
    except HarnessError as failed:
        why = str(failed)
    raise ServiceFailed(f"service {spec.name}: {spec.image} {why}{await read_log_tail(name)}")


async def describe_end(name: str) -> str:
    """Return how the container ended; empty while it runs."""
    form = "{{.State.Running}} {{.State.OOMKilled}} {{.State.ExitCode}}"
    running, hungry, code = (await run_docker("inspect", "--format", form, name)).split()
    if running == "true":
        return ""
    return "was killed for exceeding its memory" if hungry == "true" else f"ended with code {code} while it started"


async def read_log_tail(name: str) -> str:
    """Return the end of its log, formatted to follow a message."""
    try:
        text = await run_docker("logs", "--tail", str(_LOG_LINES), name, merged=True)
    except HarnessError as refused:
        return f". Its log is not available: {refused}"
    return f". Its log says:\n{text.strip()[-2000:] or 'nothing'}"


async def _await_connection(port: int, name: str, connect: Connect) -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    while True:
        with contextlib.suppress(OSError):
            (await connect(port)).close()
            return
        if loop.time() > started + _ALIVE_S:
            await _check_alive(name)
            started = loop.time()
        await asyncio.sleep(PAUSE_S)


async def _await_success(command: str, name: str) -> None:
    while True:
        try:
            await run_docker("exec", name, "sh", "-c", command, merged=True)
        except HarnessError as refused:
            await _check_alive(name)
            if "OCI runtime exec failed" in str(refused):
                raise ServiceFailed(f"cannot run its wait_for, which needs sh in the image: {refused}") from refused
        else:
            return
        await asyncio.sleep(PAUSE_S)


async def _check_alive(name: str) -> None:
    ended = await describe_end(name)
    if ended:
        raise ServiceFailed(ended)


KEEPER = "holdfast.keeper"
"""The label of the containers that one lifeline holds."""
_SCRIPT = """read -r word
left=$(docker ps --all --quiet --filter "label=$1")
[ -z "$left" ] || docker rm --force --volumes $left"""
PIDS = 4096
_LOG = ("--log-driver", "json-file", "--log-opt", "max-size=1m", "--log-opt", "max-file=1")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_LONGEST = 60_000
"""Maximum number of characters of a line that the client reads from a file."""
_HELPER_PIDS = 16


class RunningContainer:
    """A running container with its helper container and sockets. Close it after use."""

    def __init__(self, spec: ServiceSpec, folder: Path, socket_folder: Path, first: Path, lifeline: Lifeline) -> None:
        self.spec = spec
        self.socket_folder = socket_folder
        self.name = f"holdfast-{os.getpid()}-{secrets.token_hex(6)}"
        self._folder = folder / self.name
        self._lifeline = lifeline
        user = find_sandbox_user()
        self._shape = Shape(spec.image or "", first, user, self._folder, {}, Resources(), _HELPER_PIDS, self.name)
        self._helper = Container(self._shape)
        self._ports = ContainerPorts(socket_folder, self._helper.connect)

    @property
    def alive(self) -> bool:
        return not self._helper.line.closed.is_set()

    def path(self, port: int) -> str:
        return self._ports.get_socket_path(port)

    async def open(self) -> None:
        """Start it and wait until it is ready.

        Raises HarnessError with the end of its log if it does not become ready.
        """
        await self._start()
        self._folder.mkdir(mode=0o700)
        await asyncio.to_thread(make_folders, self._shape, format_hosts_file({}))
        try:
            await self._helper.open()
        except HarnessError as refused:
            why = await describe_end(self.name) or f"cannot be reached: {refused}"
            raise ServiceFailed(
                f"service {self.spec.name}: {self.spec.image} {why}{await read_log_tail(self.name)}"
            ) from refused
        await await_ready(self.spec, self.name, self._helper.connect)
        await self._ports.open(self.spec.ports or (get_port(self.spec),))

    async def close(self) -> None:
        """Remove it, also from the engine."""
        try:
            await self._ports.close()
            await self._helper.close()
        finally:
            try:
                await remove_container(self.name, "name")
            finally:
                for folder in (self._folder, self.socket_folder):
                    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _start(self) -> None:
        fd = write_env_file(self.spec.env)
        words = build_options(self.spec, self.name, self._lifeline.label, f"/proc/self/fd/{fd}")
        try:
            await run_container(*words, fds=(fd, self._lifeline.fd), env=select_client_env(self.spec.env))
        except HarnessError as refused:
            raise ServiceFailed(f"service {self.spec.name}: {self.spec.image} does not start: {refused}") from refused
        finally:
            os.close(fd)


class ContainedService:
    """One trial's container."""

    def __init__(self, running: ServiceContainer, notes: tuple[str, ...], variables: Mapping[str, str]) -> None:
        self.spec = running.spec
        self.upstream: tuple[str, int] | str = running.path(get_port(running.spec))
        self.notes = notes
        self.variables = variables
        self._running = running

    @property
    def alive(self) -> bool:
        return self._running.alive

    def upstream_of(self, port: int) -> tuple[str, int] | str:
        return self._running.path(port)

    async def close(self) -> None:
        await self._running.close()


async def open_container(spec: ServiceSpec, folder: Path) -> SpareKeeper[WarmService]:
    """Keep fresh containers ready for trials; raise UserError if the engine lacks the image."""
    try:
        image = await inspect_image(spec.image or "")
    except UserError as missing:
        raise UserError(f"service {spec.name}: {missing}", code=missing.code, hint=missing.hint) from missing
    first = await compile_first_process()
    await asyncio.to_thread(sweep)
    scratch.sweep()
    home, lifeline = SocketFolder(None), Lifeline()
    notes = (format_note(spec, image),)

    async def start_container() -> WarmService:
        running = RunningContainer(spec, folder, home.make_socket_folder(), first, lifeline)
        try:
            await running.open()
            kind = service_kinds.build_kind(spec)
            if isinstance(kind, ContainedKind):
                return await kind.contained(running, notes)
            return ContainedService(running, notes, {})
        except BaseException:
            await running.close()
            raise

    async def close_all() -> None:
        lifeline.close()
        home.close()

    return SpareKeeper(start_container, close_all)


def format_note(spec: ServiceSpec, image: Mapping[str, Any]) -> str:
    """Return a note with the digest of the image that is used, or with its id if it was built here."""
    digest = next(iter(image.get("RepoDigests") or ()), image["Id"])
    return f"service {spec.name}: {spec.image} runs as a container of {digest}"


def build_options(spec: ServiceSpec, name: str, label: str, env_path: str) -> list[str]:
    """Return the options of `docker run`, in order, without values of the environment, which others could read."""
    host = re.sub(r"[^A-Za-z0-9-]", "-", spec.name).strip("-")[:63] or "service"
    return [
        *("--detach", "--pull", "never", "--network", "none", "--name", name, *_LOG),
        *("--hostname", host, "--add-host", f"{host}:127.0.0.1"),
        *("--label", f"{LABEL}={identify_owner()}", "--label", label),
        *("--pids-limit", str(PIDS), "--memory", str(compute_data_limit()), "--memory-swap", str(compute_data_limit())),
        *("--env-file", env_path, *(word for variable in select_client_env(spec.env) for word in ("--env", variable))),
        spec.image or "",
    ]


def write_env_file(env: Mapping[str, str]) -> int:
    """Write the variables that fit on one line to a file in memory; return its descriptor, which the caller closes."""
    lines = "".join(f"{name}={value}\n" for name, value in env.items() if _is_plain_line(name, value))
    return make_memory_file(lines.encode())


def select_client_env(env: Mapping[str, str]) -> dict[str, str]:
    """Return the other variables, which the client passes on from its own environment."""
    return {name: value for name, value in env.items() if not _is_plain_line(name, value)}


def _is_plain_line(name: str, value: str) -> bool:
    long = len(name.encode()) + len(value.encode()) > _LONGEST
    return bool(_PLAIN.fullmatch(name)) and not long and "\n" not in value and "\r" not in value


class Lifeline:
    """A shell that removes all containers of its label when Holdfast ends. Close it after use.

    It waits for the end of a pipe. A client that starts a container holds the pipe, too, so no container can start
    after the shell has looked.
    """

    def __init__(self) -> None:
        self.label = f"{KEEPER}={secrets.token_hex(8)}"
        # The kernel closes the pipe with its last holder, however that dies, and the shell reads its end then.
        read, self.fd = os.pipe()
        try:
            self._shell = subprocess.Popen(  # noqa: S603
                ["/bin/sh", "-c", _SCRIPT, "sh", self.label],
                stdin=read,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        except OSError:
            os.close(self.fd)
            raise
        finally:
            os.close(read)

    def close(self) -> None:
        """End the shell; the trials have closed their containers."""
        kill_group(self._shell.pid, signal.SIGKILL)
        self._shell.wait()
        os.close(self.fd)
