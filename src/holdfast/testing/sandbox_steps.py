"""The building blocks of the checks for sandbox backends."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from holdfast.protocols.sandbox import Command, CommandEnd, Sandbox, SandboxBackend, SandboxSpec, Started, Stdio

ENV: Mapping[str, str] = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
SOON_S = 20.0
"""Long, because a busy machine is not the backend's fault."""


_LISTEN = """
import socket, sys
here = socket.create_server(("127.0.0.1", 0))
print(here.getsockname()[1], flush=True)
there, _ = here.accept()
there.sendall(b"from inside")
"""
_DEAF = """
import socket, time
here = socket.socket()
here.bind(("127.0.0.1", 0))
here.listen(0)
print(here.getsockname()[1], flush=True)
time.sleep(600)
"""


class CommandLog:
    """Commands in the order of their start, each with everything reported about its end."""

    def __init__(self) -> None:
        self.ended: list[tuple[Command, list[CommandEnd]]] = []

    def __call__(self, command: Command) -> Callable[[CommandEnd], None]:
        ends: list[CommandEnd] = []
        self.ended.append((command, ends))
        return ends.append

    @property
    def commands(self) -> list[Command]:
        return [command for command, _ in self.ended]


@asynccontextmanager
async def open_sandbox(
    backend: SandboxBackend,
    *,
    layers: tuple[Path, ...] = (),
    home: Path | None = None,
    listen: tuple[tuple[str, int], ...] = (),
    visible: Mapping[str, Path] | None = None,
    commands: Callable[[Command], Callable[[CommandEnd], None]] | None = None,
) -> AsyncIterator[Sandbox]:
    """A sandbox, closed afterwards."""
    sandbox_spec = SandboxSpec(
        os.urandom(6).hex(), layers=layers, home=home, listen=listen, visible=visible or {}, commands=commands
    )
    place = await backend.open(sandbox_spec)
    try:
        yield place
    finally:
        await place.close()


async def start(place: Sandbox, argv: Sequence[str], *, stdout: int = -1) -> Started:
    """Start a program without input."""
    null = os.open(os.devnull, os.O_RDWR)
    try:
        return await place.start(argv, ENV, Stdio(null, null if stdout < 0 else stdout, null))
    finally:
        os.close(null)


async def start_listening(place: Sandbox, *, accepts: bool) -> tuple[Started, int]:
    """Return a Python program inside that listens, and its port; unless it `accepts`, it never accepts a connection."""
    reads, writes = os.pipe()
    try:
        program = await start(place, [sys.executable, "-c", _LISTEN if accepts else _DEAF], stdout=writes)
    finally:
        os.close(writes)
    try:
        return program, int(await asyncio.to_thread(os.read, reads, 99))
    finally:
        os.close(reads)


async def read(place: Sandbox, path: str) -> bytes:
    """Return a file of the workspace; None if there is none."""
    file = place.find(path)
    return b"" if file is None else file.read_bytes()


async def wait_until(true: Callable[[], bool]) -> bool:
    """Return whether the condition becomes true soon."""
    until = time.monotonic() + SOON_S
    while not true() and time.monotonic() < until:  # noqa: ASYNC110  # other processes tell no event
        await asyncio.sleep(0.02)
    return true()


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write files with these texts, by path."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def enforces(backend: SandboxBackend, feature: str) -> bool:
    """Return whether a backend reports the feature as enforced."""
    return all(one.enforced for one in backend.isolation if one.feature == feature)


def find_sleeping(mark: str) -> list[int]:
    """Processes of this machine that run `sleep MARK`."""
    processes = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and Path(f"/proc/{name}/cmdline").read_bytes() == f"sleep\0{mark}\0".encode():
                processes.append(int(name))
        except OSError:
            continue
    return processes
