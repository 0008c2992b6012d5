"""Keeps fresh servers ready: every trial gets an unused one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from holdfast.model.trial import Trial
from holdfast.model.world import ServiceSpec
from holdfast.processes import scratch
from holdfast.protocols.service import WarmService
from holdfast.world.services.confinement import User, find_confinement
from holdfast.world.services.programs import Programs, ServerProgram, find_sibling
from holdfast.world.services.server import Server, SocketFolder

SPARE_LIMIT = 2
"""Maximum number of waiting servers: more would only use memory, because starting one is faster than a trial."""


S = TypeVar("S", bound=WarmService)


class Endings:
    """Ends servers in the background after their trials; `wait` raises the first failure."""

    def __init__(self) -> None:
        self._under_way: set[asyncio.Task[None]] = set()
        self._failed: list[BaseException] = []

    def begin(self, ending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(ending)
        self._under_way.add(task)
        task.add_done_callback(self._on_ended)

    async def wait(self) -> None:
        """Wait until all have ended; raise the first failure."""
        while self._under_way:
            await asyncio.wait(self._under_way)
        if self._failed:
            raise self._failed[0]

    def _on_ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (broken := task.exception()) is not None:
            self._failed.append(broken)


@dataclass(frozen=True)
class ServerSetup:
    """The common settings of all servers of one spec."""

    spec: ServiceSpec
    program: ServerProgram
    user: User | None
    home: SocketFolder
    notes: tuple[str, ...]
    password: str
    """The password of Holdfast's own account; empty if there is none."""
    endings: Endings = field(default_factory=Endings)

    @property
    def programs(self) -> Programs:
        return Programs(self.user, self.program.prefix)


def set_up(
    spec: ServiceSpec, program: ServerProgram, user: User | None, *notes: str, password: str = ""
) -> ServerSetup:
    """Make the folder for their sockets and the notes about them."""
    scratch.sweep()
    served = f"{spec.image} is served by" if spec.image else "it is"
    confinement, why = find_confinement(user)
    unconfined = () if confinement else (f"service {spec.name}: its server runs unconfined: {why}",)
    version = f"service {spec.name}: {served} {program.version} of this machine"
    return ServerSetup(spec, program, user, SocketFolder(user), (version, *notes, *unconfined), password)


class ServerOfTrial:
    """A service whose server belongs to one trial."""

    def __init__(self, setup: ServerSetup, server: Server, socket: str, url: str) -> None:
        self.spec = setup.spec
        self.notes = setup.notes
        self.upstream: tuple[str, int] | str = str(server.socket_folder / socket)
        self.variables: Mapping[str, str] = {"URL": url}
        self._setup = setup
        self._server = server

    @property
    def alive(self) -> bool:
        return self._server.alive

    async def close(self) -> None:
        self._server.end()
        self._setup.endings.begin(self._server.close())

    @property
    def _sockets(self) -> str:
        """The folder with its socket, as the programs next to it see it."""
        return self._setup.programs.map_sockets(self._server.socket_folder)

    async def _run_program(
        self,
        names: Sequence[str],
        options: Sequence[str],
        env: Mapping[str, str],
        *,
        source: Path | None = None,
        skip: int = 0,
        to: Path | None = None,
    ) -> None:
        """Run the first program of these names that is next to the server; see `Programs.run`."""
        argv = [str(find_sibling(self._setup.program.program, *names)), *options]
        folder = self._server.socket_folder
        await self._setup.programs.run(argv, folder, env, source=source, skip=skip, to=to)


class SpareKeeper(Generic[S]):
    """Starts the next server while a trial runs. Servers are never shared, so `alone` makes no difference."""

    def __init__(
        self,
        start: Callable[[], Awaitable[S]],
        done: Callable[[], None],
        endings: Endings | None = None,
        on_taken: Callable[[S], None] = lambda service: None,
    ) -> None:
        """`done` is called when no server is left, `on_taken` with each server that a trial gets."""
        self._start = start
        self._done = done
        self._endings = endings or Endings()
        self._on_taken = on_taken
        self._waiting: deque[asyncio.Task[S]] = deque()
        self._target = 1
        self._refill()

    async def provide(self, trial: Trial, *, alone: bool) -> S:
        while self._waiting:
            spare = self._waiting.popleft()
            # A spare that is still starting shows that trials come faster than servers start: from now on two are kept.
            if not spare.done():
                self._target = SPARE_LIMIT
            try:
                server = await spare
            finally:
                self._refill()
            if server.alive:
                break
            await server.close()
        else:
            server = await self._start()
        self._on_taken(server)
        return server

    async def close(self) -> None:
        """End all servers."""
        spares, self._target = list(self._waiting), 0
        self._waiting.clear()
        for spare in spares:
            spare.cancel()
        ended = await asyncio.gather(*spares, return_exceptions=True)
        try:
            for server in ended:
                if not isinstance(server, BaseException):
                    await server.close()
            await self._endings.wait()
        finally:
            self._done()

    def _refill(self) -> None:
        while len(self._waiting) < self._target:
            self._waiting.append(asyncio.ensure_future(self._start()))
