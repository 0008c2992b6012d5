"""Connects Unix sockets to the ports of a container without a network, and waits until the container is ready.

It is ready when its first port accepts a connection and `wait_for` succeeds inside.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from socket import socket

from holdfast.errors import HarnessError, ServiceFailed
from holdfast.model.world import ServiceSpec
from holdfast.service_kinds import get_port
from holdfast.streams.connection_listener import Forwarder
from holdfast.world.supervisors.container import run_docker

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
