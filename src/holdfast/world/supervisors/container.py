"""One container whose first process is a Holdfast program, and the connection to that program."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from holdfast.errors import HarnessError, SandboxFailed, UserError
from holdfast.model.world import Resources
from holdfast.processes.program import Program
from holdfast.protocols.sandbox import Stdio
from holdfast.streams.sockets import open_socket_path
from holdfast.world.compiled import CannotCompile, compile_source
from holdfast.world.supervisors import messages as wire
from holdfast.world.supervisors.connection import (
    SUPERVISOR_GONE,
    SupervisedPrograms,
    SupervisorConnection,
    await_connected,
)
from holdfast.world.supervisors.container_owner import LABEL, identify_owner
from holdfast.world.supervisors.messages import HOME, WORKSPACE, SupervisorMessage, change_tree_owner

SOURCE = Path(__file__).with_name("first_process.c")
_FLAGS = ("-O2", "-static")
LISTEN = 7
"""A request that only the first process understands: the value is an IPv4 address and a port."""
_FIRST, _LINE, _SOCKET = "/.holdfast/first", "/.holdfast/line", "s"
_START_S = 60.0
_GONE_S = 30.0
_ALWAYS = (
    *("--detach", "--rm", "--pull", "never", "--read-only", "--cap-drop", "ALL", "--ipc", "private"),
    *("--security-opt", "no-new-privileges", "--log-driver", "none", "--no-healthcheck", "--workdir", "/"),
)
_OWN_NETWORK = ("--network", "none", "--hostname", "holdfast", "--sysctl", "net.ipv4.ip_unprivileged_port_start=0")


class Shape(Struct, frozen=True):
    """The settings of a container."""

    image: str
    first_process: Path
    user: tuple[int, int]
    folder: Path
    """Its folder on this machine, with `workspace`, `home`, `tmp`, `hosts` and `line`."""
    visible: Mapping[str, Path]
    resources: Resources
    pids: int
    network_of: str = ""
    """Another container whose network it shares."""
    workdirs: tuple[str, ...] = ()
    """Additional paths at which the workspace is mounted."""


class Container:
    """A running container. Close it after use."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self.programs = SupervisedPrograms()
        self._line: SupervisorConnection | None = None
        self.id = ""

    async def open(self) -> None:
        """Start the container and wait for its first process.

        Raises HarnessError with the engine's message on failure.
        """
        folder = self._shape.folder / "line"
        folder.mkdir(mode=0o755)
        with _listen_in(folder) as waiting:
            # The container can neither be entered nor connected to from here, as it has no network. So its first
            # process connects to a socket in a folder that is mounted into it.
            self.id = await run_container(*build_options(self._shape))
            ours = await _accept(waiting)
        self._line = self.programs.line = SupervisorConnection(ours, self._handle_notice, self.programs.end_all)
        self._line.expect(0)
        await self._line.await_reply(0)

    @property
    def line(self) -> SupervisorConnection:
        if self._line is None:
            raise HarnessError(SUPERVISOR_GONE, code="sandbox-lost")
        return self._line

    async def listen(self, host: str, port: int) -> socket.socket:
        """Open a listening socket in the container's network."""
        value = int(ipaddress.IPv4Address(host)) << 16 | port
        try:
            listener = socket.socket(fileno=(await self.line.ask(LISTEN, value)).fds[0])
        except OSError as refused:
            raise SandboxFailed(f"cannot listen on {host}:{port} in the container: {refused.strerror}") from refused
        listener.setblocking(False)
        return listener

    async def connect(self, port: int) -> socket.socket:
        """Connect to a port in the container; raise ConnectionRefusedError while nothing listens there."""
        return await await_connected((await self.line.ask(wire.CONNECT, port)).fds[0])

    async def start(
        self, argv: Sequence[str], env: Mapping[str, str], stdio: Stdio, *, agents: bool = False
    ) -> Program:
        """Start a program of the agent or of Holdfast; raise OSError if it cannot be executed."""
        words = [str(len(argv)), str(len(env)), WORKSPACE, *argv, *(f"{name}={value}" for name, value in env.items())]
        order = wire.make_memory_file(b"".join(os.fsencode(word) + b"\0" for word in words))
        return await self.programs.start(argv[0], order, stdio, agents=agents)

    async def end_everything(self) -> int:
        """Kill every process except the first; return how many there were."""
        return (await self.line.ask(wire.FREEZE)).value

    async def close(self) -> None:
        """Remove the container, also from the engine."""
        self.programs.closing = True
        if self._line is not None:
            await self._line.close()
        if self.id:
            await remove_container(self.id)

    def _handle_notice(self, message: SupervisorMessage) -> None:
        if message.what == wire.ENDED and (program := self.programs.pop_ended(message.ticket)):
            program.finish(message.value, message.took_ns / 1e6)


def build_options(shape: Shape) -> list[str]:
    """Return the options of `docker run`, in order."""
    folder, limits = shape.folder, shape.resources
    mounts = [
        *(_mount(folder / "workspace", path, writable=True) for path in (WORKSPACE, *shape.workdirs)),
        _mount(folder / "home", HOME, writable=True),
        _mount(folder / "tmp", "/tmp", writable=True),  # noqa: S108  # inside
        _mount(folder / "hosts", "/etc/hosts"),
        _mount(folder / "line", _LINE),
        _mount(shape.first_process, _FIRST),
        *(_mount(path, inside) for inside, path in shape.visible.items()),
    ]
    memory = [] if limits.memory is None else ["--memory", str(limits.memory), "--memory-swap", str(limits.memory)]
    cpu = [] if limits.cpu is None else ["--cpus", f"{limits.cpu:g}"]
    network = ["--network", f"container:{shape.network_of}"] if shape.network_of else _OWN_NETWORK
    return [
        *_ALWAYS,
        *network,
        *("--user", f"{shape.user[0]}:{shape.user[1]}", "--label", f"{LABEL}={identify_owner()}"),
        *("--pids-limit", str(shape.pids), *memory, *cpu),
        *(word for mount in mounts for word in ("--mount", mount)),
        *("--entrypoint", _FIRST, shape.image, f"{_LINE}/{_SOCKET}"),
    ]


async def run_docker(
    *words: str, fds: Sequence[int] = (), env: Mapping[str, str] | None = None, merged: bool = False
) -> str:
    """Run the docker client and return its output; raise HarnessError with its last lines if it fails.

    `merged` adds stderr to the output. The client inherits `fds` and gets `env` in addition to Holdfast's own
    variables.
    """
    try:
        running = await asyncio.create_subprocess_exec(
            "docker",
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT if merged else asyncio.subprocess.PIPE,
            pass_fds=fds,
            env=None if env is None else {**os.environ, **env},
        )
    except OSError as broken:
        raise HarnessError(f"the docker client cannot be executed: {broken.strerror}", code="docker-failed") from broken
    try:
        async with asyncio.timeout(_START_S):
            out, err = await running.communicate()
    except TimeoutError:
        raise HarnessError(f"docker {words[0]} took more than {_START_S:g} s", code="docker-failed") from None
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()
    if running.returncode:
        raise HarnessError(
            f"docker {words[0]}: {(out if merged else err).decode('utf-8', 'replace').strip()[-1000:]}",
            code="docker-failed",
        )
    return out.decode("utf-8", "replace")


async def inspect_image(image: str) -> dict[str, Any]:
    """Return the engine's description of an image; raise UserError if the engine does not have it."""
    try:
        description: dict[str, Any] = json.loads(await run_docker("image", "inspect", "--format", "{{json .}}", image))
    except HarnessError as missing:
        raise UserError(
            f"the image {image} is not here: {missing}", code="image-missing", hint=f"docker pull {image}"
        ) from missing
    return description


async def run_container(*words: str, fds: Sequence[int] = (), env: Mapping[str, str] | None = None) -> str:
    """Run `docker run` and return the container's id.

    If cancelled, it waits for the engine and removes the container that it started.
    """
    starting = asyncio.ensure_future(run_docker("run", *words, fds=fds, env=env))
    try:
        return (await asyncio.shield(starting)).strip()
    except asyncio.CancelledError:
        await asyncio.wait({starting})  # a container can be removed only once it exists
        if starting.exception() is None:
            await remove_container(starting.result().strip())
        raise


def _mount(source: Path, target: str, *, writable: bool = False) -> str:
    """Return a mount in the format of the client: one line of comma-separated values."""
    fields = ("type=bind", f"source={source}", f"target={target}", *(() if writable else ("readonly",)))
    return ",".join('"' + field.replace('"', '""') + '"' for field in fields)


@contextlib.contextmanager
def _listen_in(folder: Path) -> Iterator[socket.socket]:
    """Open a listening socket in that folder, for the first process only."""
    waiting = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with open_socket_path(folder, _SOCKET) as address:
            waiting.bind(address)
        (folder / _SOCKET).chmod(0o666)  # no other user can enter the folder
        waiting.listen(1)
        waiting.setblocking(False)
        yield waiting
    finally:
        waiting.close()
        (folder / _SOCKET).unlink(missing_ok=True)


async def _accept(waiting: socket.socket) -> socket.socket:
    try:
        async with asyncio.timeout(_START_S):
            ours, _ = await asyncio.get_running_loop().sock_accept(waiting)
    except TimeoutError:
        raise HarnessError(
            "the container started, but its first process did not connect: does the engine run on this machine?",
            code="docker-failed",
        ) from None
    return ours


async def remove_container(container: str, known_by: str = "id") -> None:
    """Wait until the engine has removed the container, found by its `id` or `name`."""
    query = f"{known_by}={container if known_by == 'id' else f'^/{container}$'}"
    until = asyncio.get_running_loop().time() + _GONE_S
    while True:
        with contextlib.suppress(HarnessError):  # it may be gone already, or in removal
            await run_docker("rm", "--force", "--volumes", container)
        if not (await run_docker("ps", "--all", "--quiet", "--no-trunc", "--filter", query)).strip():
            return
        if asyncio.get_running_loop().time() > until:
            raise HarnessError(f"the container {container[:12]} could not be removed", code="docker-failed")
        await asyncio.sleep(0.05)


def make_folders(shape: Shape, hosts: str, fill: Callable[[str, Path], None] = lambda name, target: None) -> None:
    """Make the container's folders, owned by its user; `fill` fills each of them by name."""
    for name in ("workspace", "home", "tmp"):
        target = shape.folder / name
        target.mkdir()
        fill(name, target)
        target.chmod(0o755)
        if os.getuid() == 0:
            change_tree_owner(target, *shape.user)
    (shape.folder / "hosts").write_text(hosts)
    (shape.folder / "hosts").chmod(0o644)


async def compile_first_process() -> Path:
    """Compile the first process of containers for this machine; raise UserError if that is impossible."""
    try:
        return await asyncio.to_thread(compile_source, SOURCE, _FLAGS, (), lambda _: None)
    except CannotCompile as why:
        raise UserError(f"the first process of containers is not available: {why}", code="sandbox-unavailable") from why
