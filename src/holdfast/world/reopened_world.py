"""Reopens a kept world for inspection: its services with their earlier content, and a shell in the terminal."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import AgentUnavailable, HarnessError, HoldfastError
from holdfast.model.trial import Trial
from holdfast.model.world import EXTERNAL, ServiceSpec
from holdfast.processes.program import split_status
from holdfast.protocols.sandbox import Sandbox, Stdio
from holdfast.protocols.service import DumpableService, Mock, Service, ServiceKeeper
from holdfast.service_kinds import get_traits
from holdfast.world.kept_world import KeptWorld, get_dump_path
from holdfast.world.site_worlds import SiteWorlds

MAY_HAVE_CHANGED = "it is the one that the trial used, and may have changed since"


class ReopenedService:
    """A service that can only be connected to: it has no fixtures and no audit."""

    def __init__(self, service: Service) -> None:
        self.spec = service.spec
        self.upstream = service.upstream
        self.variables: Mapping[str, str] = service.variables
        self.notes: tuple[str, ...] = ()
        self._service = service

    async def close(self) -> None:
        await self._service.close()


class ReopenedKeeper:
    """Provides one service to one world."""

    def __init__(self, service: Service, keeper: ServiceKeeper) -> None:
        self._waiting: Service | None = service
        self._keeper = keeper

    async def provide(self, trial: Trial, *, alone: bool) -> Service:
        service, self._waiting = self._waiting, None
        if service is None:
            raise HarnessError("the services of a kept world are opened once", code="bug")
        return service

    async def close(self) -> None:
        try:
            if self._waiting is not None:
                await self._waiting.close()
        finally:
            await self._keeper.close()


async def reopen(
    spec: ServiceSpec,
    worlds: SiteWorlds,
    trial: Trial,
    folder: Path,
    kept_world: KeptWorld,
    tell: Callable[[str], None],
) -> bool:
    """Make the worlds provide a service as the trial's agent left it.

    Returns False and calls `tell` if that is impossible.
    """
    path = get_dump_path(folder, spec.name)
    if get_traits(spec).holds and not path.is_file():
        missing = kept_world.service_notes.get(spec.name, "its content was not stored")
        tell(f"service {spec.name} is not available: {missing}")
        return False
    try:
        keeper = await worlds.find_keeper(spec)
        service = await _restore(await keeper.provide(trial, alone=True), path)
    except HoldfastError as refused:
        tell(f"service {spec.name} is not available: {' '.join(str(refused).split())}")
        return False
    if note := MAY_HAVE_CHANGED if spec.kind == EXTERNAL else kept_world.service_notes.get(spec.name):
        tell(f"service {spec.name}: {note}")
    worlds.replace_keeper(
        spec, ReopenedKeeper(service if isinstance(service, Mock) else ReopenedService(service), keeper)
    )
    return True


async def _restore(service: Service, path: Path) -> Service:
    try:
        if isinstance(service, DumpableService):
            await service.restore(path)
    except BaseException:
        await service.close()
        raise
    return service


_SHELL = "/bin/sh"
_CHUNK = 1 << 16


async def visit(sandbox: Sandbox, environ: Mapping[str, str], command: Sequence[str] = ()) -> int:
    """Run a shell or a command in a sandbox, in this terminal; return its exit code."""
    # setsid gives the shell a terminal of its own, so that it can control jobs.
    setsid = shutil.which("setsid", path="/usr/bin:/bin") if sys.stdin.isatty() else None
    shell = [setsid, "-cw", _SHELL] if setsid else [_SHELL]
    return await _attach(
        sandbox, command or shell, {**environ, "TERM": os.environ.get("TERM", "dumb"), "PS1": "kept $ "}
    )


async def _attach(sandbox: Sandbox, argv: Sequence[str], env: dict[str, str]) -> int:
    if not sys.stdin.isatty():
        return await _run_program(sandbox, argv, env, Stdio(0, 1, 2))
    # The program inside gets a terminal of its own, because the user's own one would connect it to processes outside,
    # and let it type commands into their shell.
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8))
    loop = asyncio.get_running_loop()
    with _use_raw_mode():
        loop.add_reader(0, _copy_data, 0, ours)
        loop.add_reader(ours, _copy_data, ours, 1)
        try:
            return await _run_program(sandbox, argv, env, Stdio(theirs, theirs, theirs))
        finally:
            loop.remove_reader(0)
            loop.remove_reader(ours)
            os.close(theirs)
            os.close(ours)


async def _run_program(sandbox: Sandbox, argv: Sequence[str], env: dict[str, str], stdio: Stdio) -> int:
    try:
        program = await sandbox.start(argv, env, stdio)
    except OSError as refused:
        raise AgentUnavailable(
            f"cannot start {argv[0]}: {refused.strerror}", code="agent-not-started", config=True
        ) from refused
    try:
        while not await program.wait_for_end(3600.0):
            pass
    finally:
        await program.end(0.0)
    code, number = split_status(program.status)
    return code if code is not None else 128 + (number or signal.SIGKILL)


def _copy_data(source: int, target: int) -> None:
    try:
        data = os.read(source, _CHUNK)
    except OSError:  # the shell has closed its terminal
        data = b""
    if not data:
        asyncio.get_running_loop().remove_reader(source)
        return
    while data:  # a terminal may take only a part of it at a time
        data = data[os.write(target, data) :]


@contextmanager
def _use_raw_mode() -> Iterator[None]:
    """Switch the user's terminal to raw mode, so that every key is passed on."""
    before = termios.tcgetattr(0)
    tty.setraw(0, termios.TCSADRAIN)  # keeps what was typed already
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
